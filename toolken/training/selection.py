"""The prior strength by K-fold cross-validation over examples.

Folds hold out whole examples, never positions, and every tool is spread over all folds; the assignment depends on
nothing but the data. From the strongest prior to the weakest, every fold starts from its last solution. The criterion
is the mean loss of held-out positions. With very many word positions the search works on a sample of them, each
weighted by the inverse of its chance to be drawn, which leaves every mean unbiased.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from tqdm import tqdm

from toolken.config import SolverSection
from toolken.errors import UserError
from toolken.training.convex import Settings, optimise
from toolken.training.decisions import pick
from toolken.training.features import Features
from toolken.training.objective import Prior, Terms, position_losses, toolken_logits
from toolken.training.preconditioner import Preconditioner

PATIENCE = 2
"""Weaker priors that are tried after the held-out loss has begun to rise."""


class Weighted(NamedTuple):
    """Positions with their weights (N,); `total` is how many positions they stand for."""

    features: Features
    weights: Tensor | None

    def terms(self, mask: Tensor) -> Terms:
        """Return what the loss is taken over, at the positions of a mask."""
        terms = self.features.select(mask).terms()
        if self.weights is None:
            return terms
        weights = self.weights[mask]
        return terms._replace(weights=weights, total=float(weights.sum()))


def assign_folds(features: Features, folds: int) -> Tensor:
    """Return the fold (N,) of every position: examples are dealt out, tool by tool, in a scrambled but fixed order.

    An example with calls of several tools goes with the rarest one.
    """
    examples, row = torch.unique(features.example, return_inverse=True)
    at = (features.toolken >= 0).nonzero().squeeze(1)
    tools = int(features.toolken.max()) + 1 if len(features) else 0
    counts = torch.bincount(features.toolken[at], minlength=tools).tolist()
    rarest: dict[int, tuple[int, int]] = {}
    for example, tool in zip(row[at].tolist(), features.toolken[at].tolist(), strict=True):
        rarest[example] = min(rarest.get(example, (counts[tool], tool)), (counts[tool], tool))
    # A fixed scramble (Knuth's multiplicative hash), so that data that is sorted in cycles does not align with the
    # folds.
    order = sorted(range(len(examples)), key=lambda e: (rarest.get(e, (1 << 40, tools)), e * 2654435761 % 2**32, e))
    fold = torch.empty(len(examples), dtype=torch.int64)
    fold[torch.tensor(order, dtype=torch.int64)] = torch.arange(len(order)) % folds
    return fold[row]


def choose_l2(
    features: Features, mean: Tensor, *, section: SolverSection, settings: Settings, progress: bool = False
) -> tuple[float, list[dict[str, float]]]:
    """Return the strength with the smallest held-out loss, and a record of every one tried.

    The search ends early once the held-out loss has risen twice in a row. A held-out position whose tool no training
    fold has is not scored.

    Raises:
        UserError: Fewer than two examples.
    """
    folds = min(section.folds, len(torch.unique(features.example)))
    if folds < 2:
        raise UserError("solver.l2", "`auto` needs at least two examples", "give a number, such as 1e-4")
    fold = assign_folds(features, folds)
    grid = sorted(section.l2_grid, reverse=True)
    data, fold = sample_words(features, fold, mean, section=section, settings=settings, l2=grid[0])
    splits = [_Split(data, fold == number, mean) for number in range(folds)]
    scales: dict[int, Preconditioner] = {}
    records: list[dict[str, float]] = []
    with tqdm(total=len(grid) * folds, desc="l2", unit="fit", disable=None if progress else True, leave=False) as bar:
        for l2 in grid:
            scores = []
            for split in splits:
                score, scale = split.solve(l2, settings, scales.get(split.rows))
                scores.append(score)
                scales[split.rows] = scale  # folds and neighbouring strengths are alike
                bar.update()
            records.append(_record(l2, scores))
            best = min(range(len(records)), key=lambda i: records[i]["loss"])
            if len(records) - 1 - best >= PATIENCE:
                break
    return records[best]["l2"], records


class _Score(NamedTuple):
    """Held-out sums of one fold: loss, weight of scored positions, and weighted detections."""

    loss: float
    weight: float
    true_positives: float
    false_positives: float
    false_negatives: float
    evaluations: int


class _Split:
    """One fold and its last solution; positions are gathered anew for every solve, so that one fold is held at once."""

    def __init__(self, data: Weighted, held_out: Tensor, mean: Tensor) -> None:
        self.data, self.mask, self.mean = data, held_out, mean
        called = data.features.toolken[~held_out & (data.features.toolken >= 0)]
        self.known = torch.bincount(called, minlength=len(mean)).bool()
        self.weight, self.bias = mean[self.known], mean.new_zeros(int(self.known.sum()))

    @property
    def rows(self) -> int:
        """Tools that this fold trains, as a bit mask."""
        return sum(1 << row for row in self.known.nonzero().squeeze(1).tolist())

    def solve(self, l2: float, settings: Settings, scale: Preconditioner | None) -> tuple[_Score, Preconditioner]:
        """Solve from the last solution, and score the held-out positions."""
        rows = torch.full((len(self.mean) + 1,), -1, dtype=torch.int64)
        rows[self.known.nonzero().squeeze(1)] = torch.arange(int(self.known.sum()))
        training = self.data.terms(~self.mask)
        training = training._replace(toolken=rows[training.toolken])
        prior = Prior(l2, self.mean[self.known])
        found = optimise(training, self.weight, self.bias, prior=prior, settings=settings, scale=scale)
        self.weight, self.bias = found.weight, found.bias
        return self._score(rows, found.evaluations, settings), found.scale

    def _score(self, rows: Tensor, evaluations: int, settings: Settings) -> _Score:
        """Score the last solution on the held-out positions; `rows` (K + 1,) renumbers the tools."""
        held_out = self.data.terms(self.mask)
        gold = rows[held_out.toolken]
        scored = (gold >= 0) | (held_out.toolken < 0)
        weights = held_out.weights if held_out.weights is not None else torch.ones(len(gold))
        losses = position_losses(
            held_out._replace(toolken=gold),
            self.weight,
            self.bias,
            transform=settings.transform,
            block=settings.block,
        )
        logits = toolken_logits(
            held_out.hidden, self.weight, self.bias, transform=settings.transform, block=settings.block
        )
        picked = pick(logits, self.data.features.base_max[self.mask].to(logits.dtype))
        right = (picked == gold) & (gold >= 0)
        return _Score(
            float((losses * weights)[scored].sum(dtype=torch.float64)),
            float(weights[scored].sum(dtype=torch.float64)),
            float(weights[right].sum()),
            float(weights[(picked >= 0) & ~right].sum()),
            float(weights[(held_out.toolken >= 0) & ~right].sum()),
            evaluations,
        )


def _record(l2: float, scores: list[_Score]) -> dict[str, float]:
    """Add the folds up: held-out mean loss, micro F1 with its parts, evaluations."""
    loss, weight, hits, false, missed, evaluations = (sum(column) for column in zip(*scores, strict=True))
    return {
        "l2": l2,
        "loss": loss / weight,
        "f1": 2 * hits / (2 * hits + false + missed) if hits + false + missed else 0.0,
        "precision": hits / (hits + false) if hits + false else 0.0,
        "recall": hits / (hits + missed) if hits + missed else 0.0,
        "evaluations": evaluations,
    }


def sample_words(
    features: Features, fold: Tensor, mean: Tensor, *, section: SolverSection, settings: Settings, l2: float
) -> tuple[Weighted, Tensor]:
    """Return all positions, or all toolken positions and about `section.sample_words` weighted words, with folds.

    A pilot solve on a plain sample says how likely a call is at every word position; a position is drawn in
    proportion to that plus a floor.
    """
    words = (features.toolken < 0).nonzero().squeeze(1)
    if len(words) <= section.sample_words:
        return Weighted(features, None), fold
    generator = torch.Generator().manual_seed(0)
    pilot_words = words[torch.randperm(len(words), generator=generator)[: max(1, section.sample_words // 4)]]
    mask = features.toolken >= 0
    mask[pilot_words] = True
    weights = torch.ones(len(features))
    weights[words] = len(words) / len(pilot_words)
    terms = Weighted(features, weights).terms(mask)
    pilot = optimise(terms, mean, mean.new_zeros(len(mean)), prior=Prior(l2, mean), settings=settings)
    logits = toolken_logits(
        features.hidden, pilot.weight, pilot.bias, transform=settings.transform, block=settings.block
    )
    call = torch.sigmoid(torch.logsumexp(logits, dim=1) - features.base_lse)[words].double()
    chance = (call / call.mean() + 1) * (section.sample_words / (2 * len(words)))
    chance = chance.clamp(max=1)
    drawn = torch.rand(len(words), generator=generator, dtype=torch.float64) < chance
    mask = features.toolken >= 0
    mask[words[drawn]] = True
    weights = torch.ones(len(features), dtype=torch.float64)
    weights[words] = 1 / chance
    return Weighted(features.select(mask), weights[mask].to(torch.float32)), fold[mask]
