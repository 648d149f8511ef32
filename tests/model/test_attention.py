"""Attention over shared keys: the softmax over all keys, and `sdpa` itself where nothing is shared."""

from pathlib import Path

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from tests.recipes.saved import save_tiny_base
from tests.tiny import tiny_base, tiny_model
from toolken.model.attention import SHARED_PREFIX, Part, Shared, attend, choose_shared_prefix, mark, may_share
from toolken.model.base import BaseLM

MODULE = torch.nn.Module()


def numbers(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("masked", [False, True])
def test_parts_and_own_keys_give_the_softmax_over_all_keys(groups: int, length: int, masked: bool) -> None:
    rows, heads, own, size = 4, 2, 7 if masked else length, 8
    query = numbers(rows, heads * groups, length, size, seed=0)
    key, value = numbers(rows, heads, own, size, seed=1), numbers(rows, heads, own, size, seed=2)
    first, second = (numbers(1, heads, 11, size, seed=seed) for seed in (3, 4))
    third, fourth = (numbers(1, heads, 4, size, seed=seed) for seed in (5, 6))
    order = torch.tensor([0, 3, 2, 1])
    parts = [Part(2, first, second), Part(1, third, fourth), Part(1, None, None)]
    fronts = {0: (first, second), 3: (first, second), 2: (third, fourth)}
    seen = torch.ones(own, own, dtype=torch.bool).tril()[-length:].expand(rows, 1, length, own).clone()
    if masked:
        seen[1, :, :, :2] = False
    given = seen if masked else None
    out, _ = attend(MODULE, query, mark(key, Shared(parts, order, order.argsort(), {})), value, given, scaling=0.3)
    for row in range(rows):
        front = fronts.get(row, (key[:1, :, :0], value[:1, :, :0]))
        keys = torch.cat([front[0][0], key[row]], dim=1).repeat_interleave(groups, 0)
        values = torch.cat([front[1][0], value[row]], dim=1).repeat_interleave(groups, 0)
        scores = 0.3 * query[row] @ keys.transpose(1, 2)
        visible = torch.cat([torch.ones(length, keys.shape[1] - own, dtype=torch.bool), seen[row, 0]], dim=1)
        want = scores.masked_fill(~visible, -torch.inf).softmax(-1) @ values  # (heads, T, d)
        torch.testing.assert_close(out[row], want.transpose(0, 1), atol=1e-5, rtol=1e-5)


def test_without_marks_it_is_sdpa_bit_for_bit() -> None:
    query, key, value = (numbers(2, 3, 6, 8, seed=seed) for seed in range(3))
    ours, theirs = (f(MODULE, query, key, value, None, scaling=0.2) for f in (attend, sdpa_attention_forward))
    assert torch.equal(ours[0], theirs[0])


def test_it_is_chosen_for_bases_that_are_loaded_and_not_for_models_that_are_handed_over(tmp_path: Path) -> None:
    loaded = BaseLM.load(str(save_tiny_base(tmp_path / "base")), dtype="float32", device="cpu")
    assert loaded.model.config._attn_implementation == SHARED_PREFIX and loaded.shares_prefixes
    own = tiny_base("llama")
    assert own.model.config._attn_implementation == "sdpa" and not own.shares_prefixes


def test_windowed_layers_share_nothing() -> None:
    for family in ("mistral", "gemma3"):
        model = tiny_model(family, 300)  # type: ignore[arg-type]
        choose_shared_prefix(model)
        assert not may_share(model)


def test_another_attention_is_left_as_it_is() -> None:
    model = tiny_model("llama", 300)
    model.set_attn_implementation("eager")
    choose_shared_prefix(model)
    assert model.config._attn_implementation == "eager" and not may_share(model)
