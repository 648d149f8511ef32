"""L-BFGS with a strong Wolfe line search, stopped by the caller's own measure.

The caller decides what "small enough" means (the gradient in the original variables, not in the preconditioned ones
that are searched), which `torch.optim.LBFGS` cannot be told. Directions and step lengths are computed in the dtype of
the variables; it refuses nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

SUFFICIENT, CURVATURE = 1e-4, 0.9
"""Constants of the strong Wolfe conditions (Nocedal & Wright, Numerical Optimization, 2nd ed., eq. 3.7)."""

PATIENCE = 5
"""Iterations in a row that lower neither the loss nor the measure, after which the arithmetic has no more to give."""


class Point(NamedTuple):
    """A point of the search: variables, loss, gradient, and what the caller measures there (stop when <= tolerance)."""

    x: Tensor
    loss: float
    gradient: Tensor
    measure: float


class Minimum(NamedTuple):
    """Where the search ended and why, after how many evaluations; `curve` has the loss after every iteration."""

    point: Point
    evaluations: int
    converged: bool
    stalled: bool
    curve: list[tuple[int, float]]


def minimise(
    function: Callable[[Tensor], Point], start: Tensor, *, tolerance: float, max_iterations: int, history: int = 20
) -> Minimum:
    """Minimise a smooth function from `start` (any shape).

    It ends where `measure` is at most `tolerance`, where no step lowers the loss any more (the end of the
    arithmetic), or after `max_iterations`; only the first counts as converged.
    """
    point = function(start)
    evaluations, curve = 1, [(1, point.loss)]
    pairs: deque[tuple[Tensor, Tensor]] = deque(maxlen=history)
    best_loss, best_measure, idle = point.loss, point.measure, 0
    for _ in range(max_iterations):
        if point.measure <= tolerance or idle >= PATIENCE:
            break
        direction = -_inverse_hessian_times(point.gradient, pairs)
        if not pairs:
            direction /= max(1.0, float(direction.norm()))
        new, used = _line_search(function, point, direction)
        evaluations += used
        if new is None:
            if not pairs:
                idle = PATIENCE
                break
            pairs.clear()  # stale curvature can spoil a direction; one try along the plain gradient
            continue
        step, change = new.x - point.x, new.gradient - point.gradient
        if _dot(step, change) > torch.finfo(step.dtype).eps * _dot(change, change):
            pairs.append((step, change))
        point = new
        curve.append((evaluations, point.loss))
        progress = point.loss < best_loss - _noise(point) or point.measure < 0.9 * best_measure
        idle = 0 if progress else idle + 1
        best_loss, best_measure = min(best_loss, point.loss), min(best_measure, point.measure)
    converged = point.measure <= tolerance
    return Minimum(point, evaluations, converged, not converged and idle >= PATIENCE, curve)


def _noise(point: Point) -> float:
    """Return how far rounding may move the loss: a few units in the last place of its sum."""
    unit = max(0.1 * torch.finfo(point.x.dtype).eps, 4 * torch.finfo(torch.float64).eps)
    return unit * max(1.0, abs(point.loss))


def _dot(a: Tensor, b: Tensor) -> float:
    """Inner product over all entries."""
    return float(torch.dot(a.flatten(), b.flatten()))


def _inverse_hessian_times(gradient: Tensor, pairs: deque[tuple[Tensor, Tensor]]) -> Tensor:
    """Two-loop recursion (Nocedal & Wright, algorithm 7.4)."""
    q = gradient.clone()
    factors = []
    for step, change in reversed(pairs):
        rho = 1 / _dot(change, step)
        alpha = rho * _dot(step, q)
        q -= alpha * change
        factors.append((rho, alpha))
    if pairs:
        step, change = pairs[-1]
        q *= _dot(step, change) / _dot(change, change)
    for (step, change), (rho, alpha) in zip(pairs, reversed(factors), strict=True):
        q += (alpha - rho * _dot(change, q)) * step
    return q


def _line_search(
    function: Callable[[Tensor], Point], origin: Point, direction: Tensor, tries: int = 25
) -> tuple[Point | None, int]:
    """Return a point that meets the strong Wolfe conditions (or the best one seen), and the evaluations used.

    Brackets a minimum by growing the step, then narrows it by safeguarded cubic interpolation.
    """
    slope = _dot(origin.gradient, direction)
    if slope >= 0:
        return None, 0
    slack = _noise(origin)  # rounding must not refuse steps that are right
    low, low_slope, low_step = origin, slope, 0.0
    high: Point | None = None
    high_slope, high_step, step = 0.0, 0.0, 1.0
    for used in range(1, tries + 1):
        new = function(origin.x + step * direction)
        new_slope = _dot(new.gradient, direction)
        if new.loss > origin.loss + SUFFICIENT * step * slope + slack or new.loss > low.loss + slack:
            high, high_slope, high_step = new, new_slope, step
        elif abs(new_slope) <= -CURVATURE * slope:
            return new, used
        else:
            if new_slope * ((high_step - low_step) if high else 1.0) >= 0:
                high, high_slope, high_step = low, low_slope, low_step
            low, low_slope, low_step = new, new_slope, step
        if high is None:
            step *= 4
        elif abs(high_step - low_step) * min(1.0, -slope / slack) < 1e-3:  # below what the loss can tell apart
            break
        else:
            step = _cubic(low_step, low.loss, low_slope, high_step, high.loss, high_slope)
    return (low if low is not origin and low.loss <= origin.loss + slack else None), used


def _cubic(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Minimum of the cubic through two values and slopes, kept a tenth of the interval away from both ends."""
    d1 = da + db - 3 * (fa - fb) / (a - b)
    square = d1 * d1 - da * db
    middle = (a + b) / 2
    if square >= 0:
        d2 = square**0.5 * (1 if b > a else -1)
        bottom = db - da + 2 * d2
        middle = b - (b - a) * ((db + d2 - d1) / bottom) if bottom else middle
    low, high = min(a, b), max(a, b)
    margin = 0.1 * (high - low)
    return min(max(middle, low + margin), high - margin)
