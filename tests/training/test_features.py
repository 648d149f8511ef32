"""Laws 1, 2 and 10: cached equals dense, the base stays as it was, a killed extraction ends with the same bytes."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.tiny import FAMILIES, Family, tiny_model, tiny_tokenizer
from toolken.config import FeaturesSection
from toolken.data.align import Encoded
from toolken.errors import UserError
from toolken.files import TEMPORARY
from toolken.model.base import BaseLM
from toolken.training.cache import ShardCache, cache_key
from toolken.training.features import Features, extract
from toolken.training.forward import Forward, plan_shards
from toolken.training.objective import Terms, loss_and_gradient

ROWS = 448  # more head rows than the tokenizer has ids: the rest is padding


def tiny_base(family: Family = "llama") -> BaseLM:
    return BaseLM.from_model(tiny_model(family, ROWS), tiny_tokenizer("split"), name=f"tiny {family}")


def made_examples(base: BaseLM, count: int = 7, *, prefixes: int = 1, seed: int = 0) -> list[Encoded]:
    draw = torch.Generator().manual_seed(seed)

    def ids(length: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, base.vocab_size, (length,), generator=draw).tolist())

    shared = [ids(6) for _ in range(prefixes)]
    examples = []
    for number in range(count):
        text = ids(4 + int(torch.randint(0, 25, (1,), generator=draw)))
        index = tuple(range(2, len(text) - 1))
        toolken = tuple((number + at) % 3 if at % 4 == 2 else -1 for at in index)
        prefix = shared[number % prefixes] if prefixes else ()
        examples.append(Encoded(prefix, text, index, tuple(text[at + 1] for at in index), toolken))
    return examples


def section(folder: Path, **settings: int) -> FeaturesSection:
    return FeaturesSection.model_validate({"cache": folder, "token_budget": 64, "shard_examples": 3} | settings)


def shard_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}


@pytest.fixture(scope="module")
def base() -> BaseLM:
    return tiny_base()


@pytest.mark.parametrize("family", FAMILIES)
def test_law_1_cached_loss_and_gradient_are_those_of_dense_cross_entropy(family: Family, tmp_path: Path) -> None:
    base = tiny_base(family)
    assert base.vocab_size < ROWS
    before = {name: value.clone() for name, value in base.model.state_dict().items()}
    examples = made_examples(base)
    features = extract(base, examples, section=section(tmp_path), progress=False)
    draw = torch.Generator().manual_seed(1)
    weight = (torch.randn(3, base.hidden_size, generator=draw).double() * 0.3).requires_grad_()
    bias = torch.randn(3, generator=draw).double().requires_grad_()

    target = torch.tensor([word for e in examples for word in e.target])
    words = base.word_logits(features.hidden).double()
    toolkens = base.transform(features.hidden.double() @ weight.T) + bias
    labels = torch.where(features.toolken >= 0, words.shape[1] + features.toolken, target)
    dense = torch.nn.functional.cross_entropy(torch.cat([words, toolkens], dim=1), labels)
    dense.backward()

    # The cached numbers are float32; with float64 ones in their place the agreement is that of float64.
    lse, gold = words.logsumexp(1), words.gather(1, target[:, None])[:, 0]
    assert torch.allclose(features.base_lse.double(), lse, atol=1e-5)
    assert torch.allclose(features.base_target.double(), gold, atol=1e-5)
    assert torch.allclose(features.base_max.double(), words.amax(1), atol=1e-5)
    for columns, tolerance in (((lse, gold), 1e-13), ((features.base_lse, features.base_target), 1e-6)):
        terms = Terms(features.hidden, *columns, features.toolken, None, len(features))
        found = loss_and_gradient(terms, weight.detach(), bias.detach(), transform=base.transform, block=11)
        assert found.loss == pytest.approx(dense.item(), abs=tolerance)
        assert weight.grad is not None and bias.grad is not None
        assert torch.allclose(found.weight, weight.grad, rtol=0, atol=tolerance)
        assert torch.allclose(found.bias, bias.grad, rtol=0, atol=tolerance)
    after = base.model.state_dict()  # law 2
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert not any(p.requires_grad for p in base.model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("prefixes", [0, 2])
def test_law_5_an_example_in_a_batch_has_the_features_it_has_alone(
    family: Family, prefixes: int, tmp_path: Path
) -> None:
    base = tiny_base(family)
    examples = made_examples(base, prefixes=prefixes)
    features = extract(base, examples, section=section(tmp_path, token_budget=512, shard_examples=99), progress=False)
    for number, e in enumerate(examples):
        alone = base.hidden(torch.tensor([e.prefix + e.ids]))[0, [len(e.prefix) + at for at in e.index]]
        mine = features.hidden[features.example == number]
        assert torch.allclose(mine, alone, atol=1e-4, rtol=1e-5), float((mine - alone).abs().max())
        assert features.toolken[features.example == number].tolist() == list(e.toolken)


def test_law_10_an_extraction_that_is_broken_off_ends_with_the_same_bytes(
    base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = made_examples(base, 11, prefixes=2)
    whole = extract(base, examples, section=section(tmp_path / "a"), progress=False)
    run, passes = Forward.run, []

    def counted(self: Forward, encoded: list[Encoded], batch: list[int]) -> dict[str, torch.Tensor]:
        passes.append(batch)
        if len(passes) == 4:
            raise KeyboardInterrupt
        return run(self, encoded, batch)

    monkeypatch.setattr(Forward, "run", counted)
    with pytest.raises(KeyboardInterrupt):
        extract(base, examples, section=section(tmp_path / "b"), progress=False)
    stored = shard_bytes(tmp_path / "b")
    assert 0 < len(stored) < 4
    resumed = extract(base, examples, section=section(tmp_path / "b"), progress=False)
    assert shard_bytes(tmp_path / "a") == shard_bytes(tmp_path / "b")
    assert torch.equal(whole.hidden, resumed.hidden)
    done = len(passes)
    again = extract(base, examples, section=section(tmp_path / "b"), progress=False)
    assert len(passes) == done and torch.equal(again.base_lse, whole.base_lse)


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.training.test_features import made_examples, section, tiny_base
from toolken.training.features import extract
replace, renames = os.replace, []
def dying(source, target):
    renames.append(target)
    if len(renames) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = dying
base = tiny_base()
extract(base, made_examples(base, 11), section=section(Path(sys.argv[1])), progress=False)
"""


def test_law_10_a_killed_process_leaves_whole_shards_and_the_next_run_ends_with_the_same_bytes(
    base: BaseLM, tmp_path: Path
) -> None:
    found = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "b")], cwd=Path(__file__).parents[2])
    assert found.returncode == -signal.SIGKILL
    assert len(shard_bytes(tmp_path / "b")) == 2
    assert not list((tmp_path / "b").rglob("manifest.json"))
    assert list((tmp_path / "b").rglob(f"{TEMPORARY}*"))
    for folder in "ab":
        extract(base, made_examples(base, 11), section=section(tmp_path / folder), progress=False)
    assert shard_bytes(tmp_path / "a") == shard_bytes(tmp_path / "b")
    assert list((tmp_path / "b").rglob("manifest.json"))


def test_half_written_shards_are_misses(base: BaseLM, tmp_path: Path) -> None:
    examples = made_examples(base, 9)
    extract(base, examples, section=section(tmp_path), progress=False)
    good = shard_bytes(tmp_path)
    first, second, third = sorted(tmp_path.rglob("*.safetensors"))
    first.write_bytes(good[first.name][: len(good[first.name]) // 2])
    second.write_bytes(b"")
    third.write_bytes(good[first.name])  # whole, but of another shard
    extract(base, examples, section=section(tmp_path), progress=False)
    assert shard_bytes(tmp_path) == good


def test_the_key_changes_with_every_input(base: BaseLM, tmp_path: Path) -> None:
    examples = made_examples(base, 3)
    settings = section(tmp_path)
    first = examples[0]
    others = [
        replace(first, prefix=(9,)),
        replace(first, ids=(*first.ids[:-1], 6 if first.ids[-1] != 6 else 7)),
        replace(first, index=first.index[:-1], target=first.target[:-1], toolken=first.toolken[:-1]),
        replace(first, target=(*first.target[:-1], 5 if first.target[-1] != 5 else 6)),
    ]
    keys = {cache_key("f", "cpu", [changed, *examples[1:]], settings) for changed in [first, *others]}
    keys |= {cache_key("g", "cpu", examples, settings), cache_key("f", "cuda", examples, settings)}
    keys |= {cache_key("f", "cpu", examples[::-1], settings), cache_key("f", "cpu", examples[:2], settings)}
    for name in ("token_budget", "vocabulary_block", "shard_examples"):
        keys.add(cache_key("f", "cpu", examples, section(tmp_path, **{name: 17})))
    assert len(keys) == 12
    assert cache_key("f", "cpu", examples, settings) == cache_key("f", "cpu", examples, section(tmp_path / "other"))


def test_other_rows_over_the_same_text_share_the_cache(base: BaseLM, tmp_path: Path) -> None:
    examples = made_examples(base, 5)
    extract(base, examples, section=section(tmp_path), progress=False)
    renamed = [replace(e, toolken=tuple(k + 1 if k >= 0 else -1 for k in e.toolken)) for e in examples]
    features = extract(base, renamed, section=section(tmp_path), progress=False)
    assert features.toolken.tolist() == [k for e in renamed for k in e.toolken]
    assert len(list(tmp_path.rglob("manifest.json"))) == 1


def test_a_full_disk_leaves_no_broken_cache(base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match="No space left.*features.cache"):
            extract(base, made_examples(base), section=section(tmp_path), progress=False)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    with pytest.raises(UserError, match="are free"):
        ShardCache(tmp_path, "k" * 64).reserve(1 << 60)


def test_memory_that_runs_out_names_the_setting(base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(BaseLM, "hidden", exhausted)
    with pytest.raises(UserError, match=r"features.token_budget: out of memory.*lower it \(now 512\)"):
        extract(base, made_examples(base), section=section(tmp_path, token_budget=512), progress=False)


def test_what_cannot_be_extracted_is_refused(base: BaseLM, tmp_path: Path) -> None:
    good = made_examples(base, 1)[0]
    assert base.max_length is not None
    for bad, message in (
        (Encoded((), (5, 6), (), (), ()), "no supervised position"),
        (replace(good, ids=good.ids * base.max_length), "takes 512"),
        (Encoded((), (5, 6), (2,), (7,), (-1,)), "outside"),
    ):
        with pytest.raises(UserError, match=message):
            extract(base, [bad], section=section(tmp_path), progress=False)


def test_batches_respect_the_budget_and_the_plan_is_whole(base: BaseLM, tmp_path: Path) -> None:
    examples = made_examples(base, 23, prefixes=3)
    settings = section(tmp_path)
    shards = plan_shards(examples, settings)
    assert sorted(i for shard in shards for i in shard) == list(range(23))
    for shard in shards:
        batches = list(Forward(base, settings).batches(examples, shard))
        assert [i for batch in batches for i in batch] == shard
        for batch in batches:
            assert len({examples[i].prefix for i in batch}) == 1
            assert len(batch) * max(len(examples[i].ids) for i in batch) <= 64


def test_size_and_time_are_announced(base: BaseLM, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extract(base, made_examples(base), section=section(tmp_path), label="validation")
    said = capsys.readouterr()
    assert "features validation: 7 examples" in said.err and "MB in" in said.err and "about" in said.err
    assert not said.out


def test_select_keeps_columns_together() -> None:
    one = Features(torch.eye(3), *(torch.arange(3.0) for _ in range(3)), torch.tensor([0, -1, 1]), torch.arange(3))
    part = one.select(one.toolken >= 0)
    assert part.example.tolist() == part.base_lse.tolist() == [0, 2] and part.toolken.tolist() == [0, 1]
    assert torch.equal(part.hidden, torch.eye(3)[[0, 2]]) and len(part) == 2


def test_the_expected_time_is_told_where_no_bar_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = tiny_base("llama")
    rows = [Encoded((1,), tuple(range(5, 55)), (3,), (9,), (-1,)) for _ in range(400)]
    start = time.monotonic()
    extract(base, rows, section=FeaturesSection(cache=tmp_path), label="told")
    taken = time.monotonic() - start
    (told,) = re.findall(r"features told: about (\d+) s for 20,000 tokens", capsys.readouterr().err)
    assert int(told) <= 10 * taken + 10
