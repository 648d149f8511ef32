"""The trained rows: one per tool, beside the rows of the base's own head.

`z = f(W h) + b`, with `f` the base's logit transform; `b` is exactly what decoding adds. A head is a value: row
operations return a new one in which every other row keeps its bytes. Values that are not finite, a name twice, or files
that do not belong together are refused. An untrained tool is masked by whoever picks, never by minus infinity here.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from pydantic import JsonValue
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from toolken.errors import UserError, did_you_mean
from toolken.files import check_input
from toolken.model.artefact import INFO, WEIGHTS, BiasParts, HeadInfo, ToolRecord, check_base, read_info, save_files
from toolken.model.base import BaseLM

# safetensors describes its tensors in front of them
_MAX_HEADER = 2**20


class ToolkenHead:
    """Rows, biases and what they are.

    Attributes:
        weight: (K, d) float32.
        bias: (K,) float32, calibration included.
        info: Row `k` is `info.tools[k]`.
    """

    def __init__(self, weight: Tensor, bias: Tensor, info: HeadInfo) -> None:
        names = [tool.name for tool in info.tools]
        shape = (len(names), info.hidden_size)
        if tuple(weight.shape) != shape or tuple(bias.shape) != shape[:1]:
            found = f"weight {tuple(weight.shape)} and bias {tuple(bias.shape)}"
            raise UserError("toolkens", f"{found} do not fit {shape[0]} tools of width {shape[1]}", "train again")
        if weight.dtype != torch.float32 or bias.dtype != torch.float32:
            raise UserError("toolkens", f"rows are float32, not {weight.dtype} and {bias.dtype}", "convert them")
        if not (weight.isfinite().all() and bias.isfinite().all()):
            raise UserError("toolkens", "a row or a bias is not finite", "train again, with a stronger solver.l2")
        if repeated := sorted(name for name, rows in Counter(names).items() if rows > 1):
            raise UserError("toolkens", f"<{repeated[0]}> stands for two rows", "remove or rename one of them")
        self.weight = weight.detach().clone(memory_format=torch.contiguous_format)
        self.bias = bias.detach().clone(memory_format=torch.contiguous_format)
        self.info = info
        self._placed: dict[torch.device, tuple[Tensor, Tensor]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Tool names in row order."""
        return tuple(tool.name for tool in self.info.tools)

    @property
    def trained(self) -> Tensor:
        """Bool (K,): rows that may be picked; the others had no example."""
        return torch.tensor([tool.trained for tool in self.info.tools], dtype=torch.bool)

    @property
    def solved_bias(self) -> Tensor:
        """Float32 (K,): the bias before calibration, where its parts are known."""
        parts = [tool.bias_parts for tool in self.info.tools]
        rows = [float(self.bias[row]) if part is None else part.solved for row, part in enumerate(parts)]
        return torch.tensor(rows, dtype=torch.float32)

    def logits(self, hidden: Tensor, base: BaseLM) -> Tensor:
        """Return `f(W h) + b` of the base's hidden (..., d): float32 (..., K), on the device of `hidden`."""
        if hidden.device not in self._placed:
            self._placed[hidden.device] = (self.weight.to(hidden.device), self.bias.to(hidden.device))
        weight, bias = self._placed[hidden.device]
        return base.transform(hidden.float() @ weight.T) + bias

    def save(self, directory: Path | str) -> Path:
        """Write the two files; a process that is killed meanwhile leaves the old pair or the new one."""
        folder = Path(directory)
        save_files(folder, save_tensors({"weight": self.weight.cpu(), "bias": self.bias.cpu()}), self.info)
        return folder

    @classmethod
    def load(cls, directory: Path | str, *, base: BaseLM | None = None) -> ToolkenHead:
        """Read an artefact and check it against the base.

        Raises:
            UserError: A file is missing, damaged, or not of the other; or the rows were trained on another base.
        """
        folder = Path(directory)
        info = read_info(folder)
        if base is not None:
            check_base(info, base, str(folder))
        check_input(folder / WEIGHTS, 4 * len(info.tools) * (info.hidden_size + 1) + _MAX_HEADER)
        tensors = _read_tensors(folder / WEIGHTS, info.weights_sha256)
        if set(tensors) != {"weight", "bias"}:
            raise UserError(str(folder / WEIGHTS), f"it holds {sorted(tensors)}, not weight and bias", "train again")
        try:
            return cls(tensors["weight"], tensors["bias"], info)
        except UserError as error:
            raise UserError(str(folder), error.problem, error.fix) from error

    def add(self, tools: Sequence[ToolRecord], weight: Tensor, bias: Tensor) -> ToolkenHead:
        """Append rows: weight (n, d) and bias (n,).

        Raises:
            UserError: A tool has a row already, or the rows are of another width.
        """
        taken = [tool.name for tool in tools if tool.name in self.names]
        if taken:
            raise UserError("toolkens", f"<{taken[0]}> has a row already", "remove it first, or rename the new tool")
        if tuple(weight.shape[1:]) != (self.info.hidden_size,):
            problem = f"new rows {tuple(weight.shape)} are not {self.info.hidden_size} wide"
            raise UserError("toolkens", problem, "train them on the same base")
        info = self.info.model_copy(update={"tools": [*self.info.tools, *tools]})
        return ToolkenHead(torch.cat([self.weight, weight]), torch.cat([self.bias, bias]), info)

    def select(self, names: Sequence[str]) -> ToolkenHead:
        """Keep the rows of some tools, in the order given."""
        rows = [self._row(name) for name in names]
        info = self.info.model_copy(update={"tools": [self.info.tools[row] for row in rows]})
        return ToolkenHead(self.weight[rows], self.bias[rows], info)

    def remove(self, names: Sequence[str]) -> ToolkenHead:
        """Drop the rows of some tools."""
        gone = {self._row(name) for name in names}
        return self.select([name for row, name in enumerate(self.names) if row not in gone])

    def merge(self, other: ToolkenHead) -> ToolkenHead:
        """Append the rows of another head of the same base; the reasoning prompt stays that of this one.

        Raises:
            UserError: It stands on another base, or a tool has a row in both.
        """
        mine, theirs = self.info, other.info
        if mine.base_fingerprint != theirs.base_fingerprint:
            pair = [f"`{info.base_name}` ({info.base_dtype}, {info.base_fingerprint[:12]})" for info in (mine, theirs)]
            raise UserError("toolkens", f"they stand on two bases, {pair[0]} and {pair[1]}", "train both on one base")
        if mine.prompt.hash != theirs.prompt.hash:
            hashes = f"{mine.prompt.hash[:12]} and {theirs.prompt.hash[:12]}"
            warnings.warn(f"the merged rows were trained after two prompts, {hashes}: the first is kept", stacklevel=2)
        merged = self.add(theirs.tools, other.weight, other.bias)
        history = {
            "training": _together(mine.training, theirs.training),
            "calibration": _together(mine.calibration, theirs.calibration),
            "data": _together(mine.data, theirs.data),
        }
        return ToolkenHead(merged.weight, merged.bias, merged.info.model_copy(update=history))

    def calibrated(self, shift: float, per_tool: Tensor, *, record: Mapping[str, JsonValue]) -> ToolkenHead:
        """Return the same rows with `bias = solved + shift + per_tool`, float32 (K,), and the parts recorded."""
        solved = self.solved_bias
        bias = solved + shift + per_tool.float()
        tools = [
            tool.model_copy(update={"bias_parts": BiasParts(solved=float(a), shift=shift, per_tool=float(b))})
            for tool, a, b in zip(self.info.tools, solved, per_tool, strict=True)
        ]
        info = self.info.model_copy(update={"tools": tools, "calibration": dict(record)})
        return ToolkenHead(self.weight, bias, info)

    def _row(self, name: str) -> int:
        if name not in self.names:
            raise UserError("toolkens", f"no row for <{name}>", did_you_mean(name, self.names))
        return self.names.index(name)


def _read_tensors(path: Path, digest: str) -> dict[str, Tensor]:
    """Read the rows, which must be those that the JSON was written for."""
    fix = "copy both files again, or train or calibrate again"
    try:
        content = path.read_bytes()
        tensors: dict[str, Tensor] = load_tensors(content)
    except OSError as error:
        raise UserError(str(path), f"cannot be read: {error.strerror or error}", fix) from error
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError, MemoryError) as error:
        raise UserError(str(path), f"it is damaged: {str(error) or type(error).__name__}", fix) from error
    if digest and hashlib.sha256(content).hexdigest() != digest:
        raise UserError(str(path), f"it is not the file that {INFO} beside it was written for", fix)
    return tensors


def _together(mine: Mapping[str, JsonValue], theirs: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Keep both histories: what they have in common once, the rest of each under `merged`."""
    common = {key: value for key, value in mine.items() if key in theirs and theirs[key] == value}
    rests: list[JsonValue] = [{key: h[key] for key in h if key not in common} for h in (mine, theirs)]
    return {**common, "merged": rests} if any(rests) else common
