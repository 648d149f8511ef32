"""Memory that runs out names the setting that makes a pass smaller; what is finished is kept and gone on with."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from tests.commands.bad_input.refusal import INFER, TRAIN, Bench, rows
from toolken.cli import main
from toolken.model.base import BaseLM
from toolken.model.memory import out_of_memory

CPU = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate"
FAILURES = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError(f"{CPU} 4000000000000000 bytes. Error code 12 (Cannot allocate memory)"),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 4000000000 bytes."),
    MemoryError(),
]
failing = pytest.mark.parametrize("failure", FAILURES, ids=["gpu", "linux", "other systems", "python"])


def fail_above(monkeypatch: pytest.MonkeyPatch, rows: int, failure: Exception) -> None:
    """Let passes over more than so many rows run out of memory."""
    hidden: Callable[..., Tensor] = BaseLM.hidden

    def limited(base: BaseLM, ids: Tensor, **arguments: object) -> Tensor:
        if ids.shape[0] > rows:
            raise failure
        return hidden(base, ids, **arguments)

    monkeypatch.setattr(BaseLM, "hidden", limited)


def test_what_torch_really_says_is_known_as_memory_that_ran_out() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(10**15)
    assert out_of_memory(caught.value)
    assert not out_of_memory(RuntimeError("the size of tensor a (3) must match the size of tensor b (4)"))


@failing
def test_extraction_that_runs_out_of_memory_names_the_token_budget(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    fail_above(monkeypatch, 1, failure)
    monkeypatch.setenv("TOOLKEN_CACHE", str(bench.here.parent / "cache"))
    line = bench.refuse(*bench.fill(TRAIN).split())
    assert line.startswith("features.token_budget: out of memory in a pass over ")
    assert line.endswith("tokens; lower it (now 4096)")


def test_a_row_that_is_too_much_alone_is_not_blamed_on_the_budget(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = bench.fill(TRAIN).split() + ["--features.token_budget", "1"]
    real = BaseLM.hidden
    monkeypatch.setenv("TOOLKEN_CACHE", str(bench.here.parent / "cache"))

    def limited(base: BaseLM, ids: Tensor, **arguments: object) -> Tensor:
        if ids.shape[1] > 40:
            raise FAILURES[1]
        return real(base, ids, **arguments)

    monkeypatch.setattr(BaseLM, "hidden", limited)
    line = bench.refuse(*flags)
    assert line.startswith("features.token_budget: out of memory in a pass over 1 x ")
    assert line.endswith("tokens; shorten the rows or the prompt, or use a smaller base or base.dtype")


@failing
def test_answering_that_runs_out_of_memory_names_the_batch_and_a_smaller_one_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failure: Exception
) -> None:
    questions = [{"id": n, "question": f"What is {n} + {n}?"} for n in range(6)]
    bench.write({"q.jsonl": rows(*questions)})
    command = [*bench.fill(INFER).split(), "--input", "q.jsonl", "--output", "out.jsonl"]
    command += ["--inference.max_new_tokens", "4"]
    assert main([*command, "--inference.batch_size", "1"]) == 0
    undisturbed = (bench.here / "out.jsonl").read_text().splitlines()
    (bench.here / "out.jsonl").unlink()
    with monkeypatch.context() as patch:
        fail_above(patch, 2, failure)
        capsys.readouterr()
        assert main([*command, "--inference.batch_size", "3"]) == 2
    captured = capsys.readouterr()
    problem = "out of memory while 3 questions were answered together"
    wanted = f"error: inference.batch_size: {problem}; set it below 3; finished answers are not lost"
    assert captured.out == "" and captured.err.splitlines()[-1] == wanted
    (part,) = bench.here.glob("out.jsonl.*.part")
    part.write_text(undisturbed[0] + "\n")  # as if the memory had lasted for one answer
    with monkeypatch.context() as patch:
        fail_above(patch, 2, failure)
        assert main([*command, "--inference.batch_size", "2"]) == 0
    assert "1 of 6 answers are there already" in capsys.readouterr().err
    texts = [json.loads(line)["text"] for line in (bench.here / "out.jsonl").read_text().splitlines()]
    assert texts == [json.loads(line)["text"] for line in undisturbed]


@failing
def test_one_question_that_is_too_much_says_what_makes_it_smaller(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    calls: list[int] = []
    hidden = BaseLM.hidden

    def limited(base: BaseLM, ids: Tensor, **arguments: object) -> Tensor:
        calls.append(ids.shape[1])
        if ids.shape[1] > 1:
            raise failure
        return hidden(base, ids, **arguments)

    monkeypatch.setattr(BaseLM, "hidden", limited)
    line = bench.refuse(*bench.fill(INFER).split(), "--question", "What is 3 + 4?")
    fix = "shorten the question or the prompt, or use a smaller base or base.dtype"
    assert line == f"inference: out of memory while a single question was answered; {fix}"
    assert max(calls) > 1


@failing
def test_a_base_that_does_not_fit_is_one_line(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def full(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", full)
    line = bench.refuse(*bench.fill(TRAIN).split())
    assert line.startswith(f"{bench.base}: out of memory while the base was loaded: ")
    assert line.endswith("; use a smaller base, a smaller base.dtype, or base.quantization")
