"""The tables of a comparison, as values that any page can draw.

Every rate stands with its n and its 95 % interval (Wilson for shares, bootstrap for differences). Published numbers
stand in rows and columns of their own that name the model they were taken with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from toolken.evaluation.benchmarks.benchmark import Cause
from toolken.evaluation.comparison.evaluations import Cell, Evaluation
from toolken.evaluation.paired import Comparison, compare
from toolken.metrics import Rate

MATH = ("funcqa_oh", "funcqa_mh", "gsm8k_xl")
"""Benchmarks that are pooled."""
BASELINE, OURS = "base", "toolken"
NO_CALL = "no call"
CONFUSIONS = 15
"""Pairs of tools that are shown."""


class Table(NamedTuple):
    """A table with the sentence under it."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def all_tables(evaluations: Sequence[Evaluation]) -> list[Table]:
    """Return the tables in the order of the page; those without a row are left out."""
    tables = [accuracy_table(one) for one in evaluations]
    tables += [pooled_table(evaluations), *(cause_table(one) for one in evaluations)]
    tables += [confusion_table(one) for one in evaluations]
    tables += [cost_table(evaluations), run_table(evaluations)]
    return [table for table in tables if table.rows]


def show(rate: Rate) -> str:
    """Return a share with its interval."""
    if not rate.n:
        return "–"
    low, high = rate.interval
    return f"{rate.value:.3f} [{low:.3f}, {high:.3f}]"


def accuracy_table(one: Evaluation) -> Table:
    """Return accuracy, further measures, the published scorer's verdict and paired differences of one benchmark."""
    names = [name for name in one.facts.measures if any(cell.measure(name) for cell in one.cells.values())]
    scored = any(cell.published is not None for cell in one.cells.values())
    header = ["method", "n", "accuracy", *names, *(["published scorer", "disputed"] if scored else [])]
    header.append(f"less {BASELINE}")
    rows = []
    for method, cell in one.cells.items():
        row = [method, str(len(cell.records)), show(cell.accuracy), *(_measure(cell, name) for name in names)]
        if scored:
            row += [show(cell.published) if cell.published is not None else "–", str(cell.disputed)]
        row.append(_against(one, method, BASELINE))
        rows.append(row)
    for name, value in one.benchmark.published.items():
        said = [f"{value:.3f}" if column == one.benchmark.published_measure else "" for column in header[2:]]
        rows.append([f"{name} (published, {one.benchmark.published_base})", "", *said])
    partial = "; ".join(f"{method}: {n} of {one.facts.items} answers" for method, n in one.incomplete().items())
    note = f"{one.facts.items} of {one.facts.of} {one.facts.split} questions, {one.facts.tools} tools."
    note += f" Incomplete: {partial}." if partial else ""
    note += "".join(f" {method}: {said}." for method, facts in one.facts.methods.items() for said in facts.notes)
    return Table(one.title, header, rows if one.cells else [], note)


def _measure(cell: Cell, name: str) -> str:
    found = cell.measure(name)
    if found is None:
        return "–"
    value, n = found
    ones = [one.measures[name] for one in cell.records if name in one.measures]
    shown = show(Rate(int(sum(ones)), n)) if set(ones) <= {0.0, 1.0} else f"{value:.3f}"
    return shown if n == len(cell.records) else f"{shown} (n = {n})"


def _against(one: Evaluation, method: str, other: str) -> str:
    if method == other or other not in one.cells:
        return ""
    found = paired([one], method, other)
    return difference(found) if found is not None else "–"


def difference(found: Comparison) -> str:
    """Return a difference with interval and p value."""
    p = f", p = {found.p:.2g}" if found.p is not None else ""
    return f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}]{p}"


def paired(evaluations: Sequence[Evaluation], first: str, second: str) -> Comparison | None:
    """Compare two methods on the questions that both have answered; seeds of a method count with their mean."""
    strata = []
    for one in evaluations:
        a, b = seeds_mean(one, first), seeds_mean(one, second)
        shared = [question for question in a if question in b]
        if shared:
            strata.append(([a[question] for question in shared], [b[question] for question in shared]))
    return compare(strata) if strata else None


def seeds_mean(one: Evaluation, method: str) -> dict[str | int, float]:
    """Return the score of every question that a method has answered with all of its seeds."""
    runs = [cell.scores() for name, cell in one.cells.items() if name.partition(":")[0] == method or name == method]
    if not runs:
        return {}
    return {
        question: sum(run[question] for run in runs) / len(runs)
        for question in runs[0]
        if all(question in run for run in runs)
    }


def pooled_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return `toolken` against the other methods, and these against `base`, over the math benchmarks together.

    Never over two bases or two splits, and no question counts twice: of several folders of a benchmark the first one
    that holds both methods of a pair counts.
    """
    rows, repeated = [], False
    math = [one for one in evaluations if one.facts.benchmark in MATH]
    for base, split in dict.fromkeys((one.facts.base_fingerprint, one.facts.split) for one in math):
        group = [one for one in math if (one.facts.base_fingerprint, one.facts.split) == (base, split)]
        repeated |= len({one.facts.benchmark for one in group}) < len(group)
        others = list(dict.fromkeys(method.partition(":")[0] for one in group for method in one.cells))
        pairs = [(OURS, name) for name in others if name != OURS]
        pairs += [(name, BASELINE) for name in others if name not in (OURS, BASELINE)]
        for first, second in pairs:
            chosen = _once(group, first, second)
            found = paired(chosen, first, second)
            if found is not None:
                sets = ", ".join(one.facts.benchmark for one in chosen) + ("" if split == "test" else f" ({split})")
                only = "–" if found.first_only is None else f"{found.first_only} / {found.second_only}"
                name = group[0].facts.base.rpartition("/")[2]
                pair = f"{first} less {second}"
                rows.append([name, pair, sets, str(found.n), difference(found), only, found.verdict])
    header = ["base", "pair", "benchmarks", "n", "difference", "only one right", "by the interval"]
    note = "95 % bootstrap over questions, within each benchmark; p: McNemar's exact test. Seeds count with their mean."
    note += " Of several folders of a benchmark the first with both methods counts." if repeated else ""
    return Table("Math benchmarks together", header, rows, note)


def _once(evaluations: Sequence[Evaluation], first: str, second: str) -> list[Evaluation]:
    """Return the first folder of each benchmark in which both methods have answered a question."""
    chosen: dict[str, Evaluation] = {}
    for one in evaluations:
        if seeds_mean(one, first).keys() & seeds_mean(one, second).keys():
            chosen.setdefault(one.facts.benchmark, one)
    return list(chosen.values())


def cause_table(one: Evaluation) -> Table:
    """Return why answers are right or wrong."""
    shown = [cause for cause in Cause if any(cell.causes()[cause] for cell in one.cells.values())]
    rows = [
        [method, str(len(cell.records)), *(str(cell.causes()[cause]) for cause in shown)]
        for method, cell in one.cells.items()
    ]
    return Table(f"Causes: {one.title}", ["method", "n", *(cause.value for cause in shown)], rows)


def confusion_table(one: Evaluation) -> Table:
    """Return the tools that were called first in place of another one, the most frequent first."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for method, cell in one.cells.items():
        for record in cell.records:
            called = str(record.calls[0]["tool"]) if record.calls else NO_CALL
            if record.tools and called not in record.tools and any(found.calls for found in cell.records):
                counts[method, record.tools[0], called] += 1
    rows = [[*names, str(count)] for names, count in counts.most_common(CONFUSIONS)]
    header = ["method", "gold tool", "called first", "questions"]
    return Table(f"Confusions: {one.title}", header, rows, f"The {CONFUSIONS} most frequent.")


def cost_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return what an answer takes."""
    rows = [
        [
            one.title,
            method,
            f"{cell.cost('new_tokens'):.1f}",
            f"{cell.cost('fed_tokens'):.1f}",
            f"{cell.cost('calls'):.2f}",
            _seconds(one, cell),
        ]
        for one in evaluations
        for method, cell in one.cells.items()
    ]
    header = ["benchmark", "method", "new tokens", "fed tokens", "calls", "seconds"]
    return Table("Cost of a question (means; seconds: wall time of the method over its questions)", header, rows)


def _seconds(one: Evaluation, cell: Cell) -> str:
    """Return the wall time of a question; unknown while a method is under way, for it is written when it ends."""
    facts = one.facts.methods.get(cell.method)
    known = facts is not None and facts.seconds > 0 and cell.method not in one.incomplete()
    return f"{facts.seconds / len(cell.records):.2f}" if facts is not None and known else "–"


def run_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return every run with its command."""
    rows = [
        [one.title, method, f"{facts.seconds:,.0f}", facts.command]
        for one in evaluations
        for method, facts in one.facts.methods.items()
    ]
    return Table("Runs", ["benchmark", "method", "seconds", "command"], rows)
