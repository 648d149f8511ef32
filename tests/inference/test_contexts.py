"""Contexts: whatever a slot held before and whoever shares the pass, the hidden state is that of a fresh pass."""

import random

import pytest
import torch

from tests.tiny import FAMILIES, tiny_base
from toolken.inference.backend import Request
from toolken.inference.contexts import PackedContexts, common_prefix, groups, open_contexts
from toolken.inference.kv import shape_of
from toolken.inference.lone import LoneContexts
from toolken.model.base import BaseLM

PREFIX = tuple(range(5, 40))


def request(slot: int, ids: list[int], prefix: tuple[int, ...] = ()) -> Request:
    return Request(slot, ids, prefix, frozenset(), None)


def fresh(base: BaseLM, ids: list[int]) -> torch.Tensor:
    return base.hidden(torch.tensor([ids]))[0, -1]


def random_walk(rng: random.Random, ids: list[int], *, prefix: bool) -> list[int]:
    """What a machine may ask next: one more token, several, the same again, a crop with a new end, or a new context."""
    new = [rng.randrange(5, 200) for _ in range(rng.choice([1, 1, 1, 1, 2, 5, 11]))]
    kind = rng.random()
    if kind < 0.7:
        return ids + new
    if kind < 0.8:
        return ids
    if kind < 0.95:
        return ids[: rng.randrange(len(ids))] + new
    return [*PREFIX, *new] if prefix else new


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lone", [False, True])
def test_law_4_a_reused_cache_gives_the_hidden_state_of_a_fresh_pass(family: str, lone: bool) -> None:
    base = tiny_base(family)
    contexts = LoneContexts(base) if lone else open_contexts(base, token_budget=64)
    assert lone or isinstance(contexts, PackedContexts)
    rng = random.Random(family)
    held = {slot: [*PREFIX, slot + 50] if slot % 2 else [slot + 50] for slot in range(5)}
    for _ in range(14):
        asked = rng.sample(sorted(held), rng.randrange(1, 6))
        for slot in asked:
            held[slot] = random_walk(rng, held[slot], prefix=slot % 2 == 1)
        got = contexts.hidden(
            [request(slot, held[slot], PREFIX if held[slot][:35] == [*PREFIX] else ()) for slot in asked]
        )
        want = torch.stack([fresh(base, held[slot]) for slot in asked])
        torch.testing.assert_close(got, want, atol=2e-5, rtol=1e-4)
        if rng.random() < 0.2:
            contexts.release(asked[0])


def test_only_new_tokens_are_fed_and_a_shared_prefix_once() -> None:
    base = tiny_base()
    contexts = open_contexts(base)
    first, second = [*PREFIX, 41, 42], [*PREFIX, 43]
    contexts.hidden([request(0, first, PREFIX), request(1, second, PREFIX)])
    assert contexts.fed == len(PREFIX) + 2 + 1
    contexts.hidden([request(0, [*first, 44], PREFIX)])
    contexts.hidden([request(0, [*first, 44], PREFIX)])
    assert contexts.fed == len(PREFIX) + 4, "a context that is asked for again feeds nothing"
    contexts.hidden([request(0, [*first, 45], PREFIX)])
    assert contexts.release(0) == 2 + 1 + 1
    assert contexts.release(0) == 0
    contexts.hidden([request(7, [*PREFIX, 46], PREFIX)])
    assert contexts.fed == len(PREFIX) + 6, "a new context starts from the prefix"


def test_the_prefix_store_is_bounded_by_tokens() -> None:
    base = tiny_base()
    contexts = open_contexts(base, prefix_tokens=80)
    prefixes = [tuple(range(start, start + 30)) for start in (5, 6, 7, 8)]
    for slot, prefix in enumerate(prefixes):
        contexts.hidden([request(slot, [*prefix, 9], prefix)])
    fed = contexts.fed
    contexts.hidden([request(10, [*prefixes[3], 9], prefixes[3])])
    assert contexts.fed == fed + 1
    contexts.hidden([request(11, [*prefixes[0], 9], prefixes[0])])
    assert contexts.fed == fed + 1 + 31, "the one not used for longest was dropped"


def test_a_pass_sees_no_more_columns_than_its_longest_context(monkeypatch: pytest.MonkeyPatch) -> None:
    base = tiny_base()
    contexts = open_contexts(base)
    short, long = [5, 6, 7], list(range(5, 45))
    for step in range(3):
        contexts.hidden([request(0, [*short, *[9] * step]), request(1, [*long, *[9] * step])])
    contexts.release(1)
    seen: list[int] = []
    hidden = base.hidden

    def watched(ids: torch.Tensor, **given: torch.Tensor) -> torch.Tensor:
        seen.append(given["mask"].shape[1])
        return hidden(ids, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(base, "hidden", watched)
    context = [*short, *[9] * 3]
    got = contexts.hidden([request(0, context)])
    assert seen == [len(context)], "columns of a context that has left cost nothing"
    monkeypatch.undo()
    torch.testing.assert_close(got[0], fresh(base, context), atol=2e-5, rtol=1e-4)


def test_caches_with_windowed_layers_are_not_packed() -> None:
    from transformers import DynamicCache

    base = tiny_base("mistral")
    cache = DynamicCache(config=base.model.config)
    base.hidden(torch.tensor([[1]]), cache=cache)
    assert shape_of(cache) is None
    cache = base.new_cache()
    base.hidden(torch.tensor([[1]]), cache=cache)
    assert shape_of(cache) is not None


def test_groups_keep_to_the_budget_of_padded_tokens() -> None:
    lengths = [2, 2, 3, 8, 9, 40]
    cut = groups(lengths, 18, pass_tokens=1000)
    assert [lengths[rows] for rows in cut] == [[2, 2, 3], [8, 9], [40]]
    assert groups([], 10, pass_tokens=5) == []


def test_groups_cost_least_of_all_ways_to_cut() -> None:
    rng = random.Random(1)
    for _ in range(100):
        lengths = sorted(rng.randrange(1, 60) for _ in range(rng.randrange(1, 8)))
        overhead = rng.choice([0, 5, 40])

        def cost(runs: list[list[int]], overhead: int = overhead) -> int:
            return sum(len(run) * run[-1] + overhead for run in runs)

        ways = []
        for cuts in range(2 ** (len(lengths) - 1)):
            ends = [at + 1 for at in range(len(lengths) - 1) if cuts >> at & 1] + [len(lengths)]
            ways.append([lengths[begin:end] for begin, end in zip([0, *ends], ends, strict=False)])
        fitting = [runs for runs in ways if all(len(run) == 1 or len(run) * run[-1] <= 90 for run in runs)]
        found = [lengths[rows] for rows in groups(lengths, 90, pass_tokens=overhead)]
        assert sum(found, []) == lengths and found in fitting
        assert cost(found) == min(map(cost, fitting))


def test_common_prefix() -> None:
    assert common_prefix([1, 2, 3], (1, 2, 4)) == 2
    assert common_prefix([], [1]) == 0
    assert common_prefix([1, 2], [1, 2, 3]) == 2
