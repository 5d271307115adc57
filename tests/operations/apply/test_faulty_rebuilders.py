"""Rebuilders with one fault each: every one is noticed before the new checkpoint is used, and nothing is changed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.checkpoint.layout import commit_path, offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.core.errors import Refused
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore
from tests.support.errors import raises_code
from tests.support.homes import ROWS
from tests.support.rebuilds import CLEAN, StubReplayer, make_project

Fault = Callable[[WriteStore, int], None]


class FaultyReplayer(StubReplayer):
    """Runs a replayed batch, and reports of it what is expected; what it does besides is its fault."""

    before: Fault = staticmethod(lambda _store, _batch: None)
    after: Fault = staticmethod(lambda _store, _batch: None)
    reports: Callable[[tuple[int, int]], tuple[int, int]] = staticmethod(lambda replayed: replayed)

    def run_pending(self, checkpoint: str, **options: object) -> tuple[int, int]:
        store = open_write_store(checkpoint)
        batch = read_logs(store).planned
        if options["changelog"]:
            type(self).before(store, batch)
        replayed = super().run_pending(checkpoint, **options)
        if options["changelog"]:
            type(self).after(store, batch)
            return type(self).reports(replayed)
        return replayed


def _edited(store: WriteStore, batch: int, edit: Callable[[list[str]], None]) -> None:
    lines = store.read(offset_path(batch)).decode().split("\n")
    edit(lines)
    store.write(offset_path(batch), "\n".join(lines).encode())


def drop_watermark(store: WriteStore, batch: int) -> None:
    def edit(lines: list[str]) -> None:
        lines[1] = json.dumps({**json.loads(lines[1]), "batchWatermarkMs": 0}, separators=(",", ":"))

    _edited(store, batch, edit)


def merge_with_next(store: WriteStore, batch: int) -> None:
    def edit(lines: list[str]) -> None:
        lines[2] = json.dumps({"logOffset": json.loads(lines[2])["logOffset"] + 1}, separators=(",", ":"))

    _edited(store, batch, edit)


def one_more_trigger(store: WriteStore, batch: int) -> None:
    """Another batch is run after the replayed one, as a second trigger would do."""
    store.write(offset_path(batch + 1), store.read(offset_path(batch)))
    store.write(commit_path(batch + 1), store.read(commit_path(batch)))


class DropsWatermark(FaultyReplayer):
    before = staticmethod(drop_watermark)


class Merges(FaultyReplayer):
    before = staticmethod(merge_with_next)


class MergesAndReportsOne(FaultyReplayer):
    before = staticmethod(merge_with_next)
    reports = staticmethod(lambda replayed: (replayed[0], ROWS))


class OneTriggerMore(FaultyReplayer):
    after = staticmethod(one_more_trigger)


class OneTriggerMoreReported(FaultyReplayer):
    reports = staticmethod(lambda replayed: (replayed[0] + 1, replayed[1]))


class SkipsRows(FaultyReplayer):
    """Starts to read one batch too late: what the first one had to read is missing."""

    reports = staticmethod(lambda replayed: (replayed[0], 0))


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (DropsWatermark, "verify-range"),
        (Merges, "rows-differ"),
        (MergesAndReportsOne, "verify-range"),
        (OneTriggerMore, "verify-marks"),
        (OneTriggerMoreReported, "replay-strayed"),
        (SkipsRows, "rows-differ"),
    ],
)
def test_a_faulty_rebuilder_is_refused(tmp_path: Path, fault: type[FaultyReplayer], code: str) -> None:
    project = make_project(tmp_path, CLEAN)
    before, plan = project.in_use(), project.plan()

    with raises_code(Refused, code):
        project.apply(plan, fault(tmp_path / "clicks.py"))

    after = project.in_use()
    assert {name: after[name] for name in before} == before


def test_one_without_a_fault_is_not(tmp_path: Path) -> None:
    project = make_project(tmp_path, CLEAN)

    assert project.apply(project.plan(), FaultyReplayer(tmp_path / "clicks.py"))
