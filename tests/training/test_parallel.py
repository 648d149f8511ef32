"""Shards that several processes share out: each is computed once, with the bytes of a process alone.

Two threads stand for two processes here; tests of real ones are in `tests/recipes/test_parallel.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch.distributed import HashStore  # type: ignore[attr-defined]

from tests.training.test_features import made_examples, section, tiny_base
from toolken.data.align import Encoded
from toolken.errors import UserError
from toolken.files import TEMPORARY
from toolken.model.base import BaseLM
from toolken.training import parallel, processes
from toolken.training.cache import ShardCache
from toolken.training.features import extract
from toolken.training.forward import Forward
from toolken.training.parallel import fill_together
from toolken.training.processes import Processes


def all_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def base() -> BaseLM:
    return tiny_base()


def splits(count: int = 11) -> dict[str, list[Encoded]]:
    base = tiny_base()
    return {"train": made_examples(base, count, prefixes=2), "validation": made_examples(base, 4, seed=1), "none": []}


def both(monkeypatch: pytest.MonkeyPatch, work: Callable[[Processes], None]) -> list[Future[None]]:
    """Do the work as two processes, each in a thread, and return how they ended."""
    store, barrier = HashStore(), threading.Barrier(2)

    def meet(self: Processes) -> None:
        while True:
            self._stop_with_others()
            try:
                barrier.wait(timeout=1.0)
                return
            except threading.BrokenBarrierError:
                barrier.reset()

    def one(rank: int) -> None:
        with Processes(rank, 2, local=rank, store=store) as crew:
            work(crew)

    monkeypatch.setattr(Processes, "_meet", meet)
    monkeypatch.setattr(processes, "destroy_process_group", lambda: None)
    monkeypatch.setattr(parallel, "PATIENCE", 0.1)
    with ThreadPoolExecutor(2) as pool:
        return [pool.submit(one, rank) for rank in range(2)]


@pytest.mark.parametrize("found", [(), (0, 2)])
def test_law_10_shared_shards_have_the_bytes_of_a_process_alone_and_are_computed_once(
    base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: tuple[int, ...]
) -> None:
    rows = splits()
    for label in ("train", "validation"):
        extract(base, rows[label], section=section(tmp_path / "alone"), progress=False, label=label)
    alone = all_bytes(tmp_path / "alone")
    if found:  # what a killed run left
        fill_together(base, rows, section=section(tmp_path / "shared"), processes=Processes())
        for number, path in enumerate(sorted((tmp_path / "shared").rglob("*.safetensors"))):
            if number not in found:
                path.unlink()
    threads: list[int] = []
    write, both_have_one = ShardCache.write, threading.Barrier(2)

    def seen(self: ShardCache, number: int, columns: dict[str, torch.Tensor]) -> None:
        if threading.get_ident() not in threads:
            both_have_one.wait(timeout=60)
        threads.append(threading.get_ident())
        write(self, number, columns)

    monkeypatch.setattr(ShardCache, "write", seen)
    ends = both(
        monkeypatch, lambda crew: fill_together(base, rows, section=section(tmp_path / "shared"), processes=crew)
    )
    assert [end.exception() for end in ends] == [None, None]
    assert len(threads) == 6 - len(found) and len(set(threads)) == 2
    assert not list((tmp_path / "shared").rglob(f"{TEMPORARY}*"))
    for label in ("train", "validation"):  # finds all of it, and says so in a manifest
        extract(base, rows[label], section=section(tmp_path / "shared"), progress=False, label=label)
    assert len(threads) == 6 - len(found)
    assert all_bytes(tmp_path / "shared") == alone


def test_nothing_to_extract_needs_no_cache(base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = both(monkeypatch, lambda crew: fill_together(base, {"none": []}, section=section(tmp_path), processes=crew))
    assert [end.exception() for end in ends] == [None, None] and not list(tmp_path.iterdir())


def test_processes_with_other_examples_are_refused_before_any_work(
    base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = both(
        monkeypatch,
        lambda crew: fill_together(base, splits(11 + crew.rank), section=section(tmp_path), processes=crew),
    )
    for end in ends:
        with pytest.raises(UserError, match="process 1 of 2: has another base or other examples than process 0"):
            end.result()
    assert not all_bytes(tmp_path)


def test_processes_that_do_not_share_a_cache_folder_are_refused_before_any_work(
    base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = both(
        monkeypatch,
        lambda crew: fill_together(base, splits(), section=section(tmp_path / str(crew.rank)), processes=crew),
    )
    for end in ends:
        with pytest.raises(UserError, match="process 1 does not see what process 0 writes there; set features.cache"):
            end.result()
    assert not all_bytes(tmp_path)


def test_a_shard_that_another_process_lost_is_refused(
    base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(self: ShardCache, number: int, columns: dict[str, torch.Tensor]) -> None:
        pass

    monkeypatch.setattr(ShardCache, "write", lose)
    first, second = both(
        monkeypatch, lambda crew: fill_together(base, splits(), section=section(tmp_path), processes=crew)
    )
    with pytest.raises(UserError, match="another process wrote it, but it is not here; set features.cache"):
        first.result()
    second.result()


def test_a_process_that_fails_stops_the_others_at_their_next_batch(
    base: BaseLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, run, failed, after = splits(60), Forward.run, threading.Event(), []

    def failing(self: Forward, encoded: list[Encoded], batch: list[int]) -> dict[str, torch.Tensor]:
        if not failed.is_set():
            failed.set()
            raise UserError("features.token_budget", "out of memory")
        after.append(batch)
        return run(self, encoded, batch)

    def work(crew: Processes) -> None:
        fill_together(base, rows, section=section(tmp_path), processes=crew)

    monkeypatch.setattr(Forward, "run", failing)
    ends = both(monkeypatch, work)
    lines = sorted(str(end.exception()) for end in ends)
    assert lines[0] == "features.token_budget: out of memory"
    assert "another process failed (process" in lines[1] and "features.token_budget: out of memory" in lines[1]
    assert len(after) < 20  # of more than sixty
    monkeypatch.setattr(Forward, "run", run)
    assert [end.exception() for end in both(monkeypatch, work)] == [None, None]
