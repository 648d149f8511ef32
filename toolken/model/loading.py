"""Loads a model and its tokenizer onto a device: dtype, quantisation, several GPUs, a PEFT adapter.

Weights come from safetensors only, and code from a model's repository is never run. What cannot be loaded here is
refused with the fix.
"""

from __future__ import annotations

import os
import platform
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from toolken.errors import UserError
from toolken.hub import hub_silence
from toolken.model.memory import out_of_memory
from toolken.model.sources import Source, resolve

KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
"""Compiled kernels that oneDNN keeps, one a shape; its own 1024 take hundreds of MB after passes of all lengths."""
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load_base(
    name: str,
    *,
    revision: str | None,
    dtype: str,
    device: str,
    device_map: str | None,
    quantization: str,
    adapter: str | None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model, in eval mode on its device, and its tokenizer; the arguments are those of `BaseSection`."""
    os.environ.setdefault(KERNELS, "32")  # read when the first kernel is compiled
    target = choose_device(device)
    kind = choose_dtype(dtype, target)
    source = resolve(name, revision)
    arguments: dict[str, Any] = {"dtype": kind, "use_safetensors": True}
    if quantization != "none":
        arguments["quantization_config"] = _quantization(quantization, kind)
        arguments["device_map"] = device_map or {"": str(target)}
    elif device_map is not None:
        arguments["device_map"] = device_map
    model, tokenizer = _from_pretrained(source, arguments)
    if "device_map" not in arguments:
        model = torch.nn.Module.to(model, target)
    if adapter is not None:
        model = _with_adapter(model, adapter)
    return model, tokenizer


def choose_device(device: str) -> torch.device:
    """Return the device that a setting means; `auto` is CUDA where there is one.

    Raises:
        UserError: It is no device, or is CUDA where there is none.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        target = torch.device(device)
    except RuntimeError as error:
        raise UserError("base.device", f"`{device}` is no device", "use auto, cpu, cuda or cuda:1") from error
    if target.type == "cuda" and not torch.cuda.is_available():
        raise UserError("base.device", f"`{device}` was asked for, but torch sees no CUDA device", "use device: auto")
    return target


def choose_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """Return the dtype that a setting means; `auto` is bfloat16 where the device computes it natively."""
    if dtype != "auto":
        return DTYPES[dtype]
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    elif device.type == "cpu":
        native = _cpu_has_bfloat16()
    else:
        native = False
    return torch.bfloat16 if native else torch.float32


def _cpu_has_bfloat16() -> bool:
    """Say whether this CPU multiplies bfloat16 in hardware; emulated, it is slower than float32."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _quantization(kind: str, compute: torch.dtype) -> BitsAndBytesConfig:
    if find_spec("bitsandbytes") is None:
        raise UserError(
            "base.quantization",
            f"{kind} needs the bitsandbytes library, which is not installed",
            "pip install bitsandbytes, or use quantization: none",
        )
    if kind == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)  # type: ignore[no-untyped-call]
    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute
    )


def _from_pretrained(source: Source, arguments: dict[str, Any]) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load both parts; whatever the library cannot find or build becomes one line."""
    place: dict[str, Any] = {"revision": source.revision, "local_files_only": bool(source.offline)}
    part = "its configuration or tokenizer"
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.path, trust_remote_code=False, **place)
        part = "the base"
        model = AutoModelForCausalLM.from_pretrained(source.path, trust_remote_code=False, **place, **arguments)
    except (OSError, ValueError, ImportError, RuntimeError, KeyError, MemoryError, SafetensorError) as error:
        raise _unloadable(source, part, error) from error
    return model, tokenizer


def _unloadable(source: Source, part: str, error: BaseException) -> UserError:
    """Say which setting or file let the library down, and what to do about it."""
    reason = _first_line(error)
    if out_of_memory(error):
        fix = "use a smaller base, a smaller base.dtype, or base.quantization"
        return UserError(source.name, f"out of memory while the base was loaded: {reason}", fix)
    if isinstance(error, SafetensorError):
        fix = "copy or download them again"
        return UserError(source.name, f"its weights are damaged or cut off: {reason}", fix)
    if source.offline and isinstance(error, OSError):
        return UserError(source.name, f"{source.offline}, and the model is not in the local cache", source.fix)
    if "device_map" in reason:
        return UserError("base.device_map", reason, "use auto, or leave it out")
    return UserError(source.name, f"{part} cannot be loaded: {reason}", source.fix)


def _with_adapter(model: PreTrainedModel, adapter: str) -> PreTrainedModel:
    """Put a PEFT adapter into the model's layers; it is not merged, the weights below stay as they are."""
    from peft import PeftModel

    folder = Path(adapter)
    place = adapter if folder.exists() else _hub_adapter(adapter)
    if folder.exists() and not (folder / "adapter_model.safetensors").exists():
        raise UserError(
            adapter,
            "the adapter has no adapter_model.safetensors",
            "save it again with PEFT's save_pretrained, which writes safetensors",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft reads names that transformers is about to drop
            adapted = PeftModel.from_pretrained(model, place, is_trainable=False, autocast_adapter_dtype=False)
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise UserError(
            adapter, f"the adapter cannot be applied: {_first_line(error)}", "check base.adapter"
        ) from error
    if adapted.active_peft_config.is_prompt_learning:
        raise UserError(adapter, "it is a prompt-tuning adapter, which adds no weights to layers", "use a LoRA adapter")
    inner: PreTrainedModel = adapted.get_base_model()
    return inner


def _hub_adapter(adapter: str) -> str:
    """Return where PEFT finds an adapter of the hub: in the local cache where there is no network."""
    if adapter.startswith(("/", ".", "~")):
        raise UserError(adapter, "there is no such directory", "check base.adapter")
    offline = hub_silence()
    if not offline:
        return adapter
    try:
        return snapshot_download(adapter, local_files_only=True)
    except (OSError, ValueError) as error:
        problem = f"there is no such directory, {offline}, and no adapter of that name is in the local cache"
        raise UserError(adapter, problem, "check base.adapter, or connect to the hub once") from error


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]
