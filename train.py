"""Train toolkens beside a frozen base model.

python train.py --config configs/quickstart.yaml --out runs/quickstart
python train.py --config configs/funcqa.yaml --data.root "$TOOLKEN_DATA" --solver.l2 1e-4
accelerate launch --multi_gpu --num_processes 2 train.py --config configs/quickstart.yaml
"""

import sys

from toolken.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
