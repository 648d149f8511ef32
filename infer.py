"""Answer questions with trained toolkens.

python infer.py --toolkens runs/quickstart/toolkens --question "What is the square root of 4916.8?" --trace
python infer.py --toolkens runs/quickstart/toolkens --input questions.jsonl --output answers.jsonl
"""

import sys

from toolken.cli import main

if __name__ == "__main__":
    sys.exit(main(["infer", *sys.argv[1:]]))
