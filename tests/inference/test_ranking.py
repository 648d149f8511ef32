"""Order of candidates, and sampling as an order."""

import torch

from toolken.inference.ranking import FIRST, candidates, perturb


def test_ties_rank_by_index_and_masked_entries_are_left_out() -> None:
    scores = torch.tensor([0.0, 3.0, 1.0, 3.0, -torch.inf, 1.0])
    assert [(c.token, c.toolken) for c in candidates(scores, words=4)] == [(1, -1), (3, -1), (2, -1), (-1, 1), (0, -1)]


def test_the_order_is_complete_and_right_beyond_the_first_few() -> None:
    generator = torch.Generator().manual_seed(0)
    for distinct in (2, 7, 10_000):
        scores = torch.randint(distinct, (FIRST * 5,), generator=generator).float()
        order = [c.token for c in candidates(scores, words=len(scores))]
        assert order == torch.sort(scores, descending=True, stable=True).indices.tolist()


def test_the_first_allowed_candidate_is_an_exact_sample_of_the_restricted_distribution() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0, 1.5])
    allowed = [1, 2, 4]
    counts = torch.zeros(5)
    draws = 6000
    for seed in range(draws):
        scores = perturb(logits, seed=seed, temperature=0.7, top_p=1.0)
        counts[next(c.token for c in candidates(scores, words=5) if c.token in allowed)] += 1
    expected = torch.zeros(5)
    expected[allowed] = (logits[allowed] / 0.7).softmax(-1)
    # Four standard deviations of a share.
    assert ((counts / draws - expected).abs() < 4 * (expected * (1 - expected) / draws).sqrt() + 1e-9).all()


def test_the_nucleus_comes_first_and_the_rest_keeps_its_order() -> None:
    logits = torch.tensor([3.0, 2.9, -2.0, -3.0, -torch.inf])
    for seed in range(200):
        order = [c.token for c in candidates(perturb(logits, seed=seed, temperature=1.0, top_p=0.9), words=5)]
        assert set(order[:2]) == {0, 1} and set(order[2:]) == {2, 3}
    thirds = [
        [c.token for c in candidates(perturb(logits, seed=seed, temperature=1.0, top_p=0.9), words=5)][2]
        for seed in range(200)
    ]
    assert 100 < thirds.count(2) < 190, "outside the nucleus it is still a sample"


def test_one_entry_is_always_in_the_nucleus() -> None:
    order = candidates(perturb(torch.tensor([0.0, 9.0]), seed=1, temperature=1.0, top_p=1e-6), words=2)
    assert next(order).token == 1
