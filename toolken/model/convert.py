"""Converts a GGUF file once into a safetensors directory in the cache.

Weights are kept in float32, so that the dequantised values are exact and every dtype can be loaded from one directory.
The cache key is the SHA-256 of the file. A directory is written under another name and renamed when its manifest, the
last file, is in it: half-written ones are misses. A lock keeps two processes from doing the same work.
"""

from __future__ import annotations

import gc
import json
import shutil
import struct
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from transformers import AutoModelForCausalLM, AutoTokenizer

from toolken.errors import UserError

# Part of the key: raise it when the conversion writes something else.
FORMAT = 1
MANIFEST = "toolken-source.json"


def converted(folder: Path, *, digest: str, label: str) -> Path | None:
    """Return the finished conversion of the file with this SHA-256, if there is one."""
    target = folder / f"{label}-{digest[:16]}"
    try:
        manifest = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return target if manifest == {"format": FORMAT, "sha256": digest} else None


def convert(gguf: Path, folder: Path, *, digest: str, label: str) -> Path:
    """Return the directory into which a GGUF file was converted; convert it where that has not been done.

    Raises:
        UserError: The file is damaged, or of an architecture that transformers cannot read from GGUF.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{label}-{digest[:16]}"
    with FileLock(f"{target}.lock"):
        if (ready := converted(folder, digest=digest, label=label)) is not None:
            return ready
        begin = time.monotonic()
        size = gguf.stat().st_size / 1e6
        print(f"Converting {gguf.name} ({size:.0f} MB), once, into {target}", file=sys.stderr, flush=True)
        for stale in folder.glob(f".{target.name}-*"):
            shutil.rmtree(stale, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=folder))
        try:
            _write(gguf, scratch)
            (scratch / MANIFEST).write_text(json.dumps({"format": FORMAT, "sha256": digest}), encoding="utf-8")
            shutil.rmtree(target, ignore_errors=True)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        print(f"Converted in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    return target


def _write(gguf: Path, folder: Path) -> None:
    """Dequantise a GGUF file and save model and tokenizer."""
    place: dict[str, Any] = {"gguf_file": gguf.name}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy views of the mapped file are not writable, which torch remarks on
            tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **place)
            model = AutoModelForCausalLM.from_pretrained(str(gguf.parent), dtype=torch.float32, **place)
    except (OSError, ValueError, KeyError, IndexError, RuntimeError, NotImplementedError, struct.error) as error:
        reason = str(error).strip().partition("\n")[0][:300] or type(error).__name__
        raise UserError(
            str(gguf), f"it cannot be converted: {reason}", "use a safetensors directory or hub id"
        ) from error
    # The dequantised model still calls itself quantised and would refuse to be saved.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer = None  # type: ignore[assignment]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _drop_padding(folder / "tokenizer.json")
    del model
    gc.collect()


def _drop_padding(path: Path) -> None:
    """Take the entries `[PAD<id>]` off the end of a vocabulary.

    A GGUF file names every padded row of the head so; no text ever has these ids, and they must not count as words.
    """
    rules = json.loads(path.read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = rules["model"]["vocab"]
    if not isinstance(vocabulary, dict):
        return
    last = max(vocabulary.values(), default=-1)
    while vocabulary.get(f"[PAD{last}]") == last:
        del vocabulary[f"[PAD{last}]"]
        last -= 1
    added = [token for token in rules.get("added_tokens", []) if token["content"] != f"[PAD{token['id']}]"]
    rules["added_tokens"] = added
    path.write_text(json.dumps(rules, ensure_ascii=False), encoding="utf-8")
