"""Each screen at two widths of a terminal, in a pipe and without colour: no word is broken, and nothing is cut."""

import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from slackwater.audit.steps import Step
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.comparison import CheckedPipeline, CheckedStream
from slackwater.cli.common.console import folds
from slackwater.cli.common.pages import show
from slackwater.cli.main import main
from slackwater.cli.verbs.audit import audit_page
from slackwater.cli.verbs.check import check_page
from slackwater.cli.verbs.run import LiveDisplay, PlainDisplay
from slackwater.core.verdict import Change, Effect, StreamVerdict, Verdict
from slackwater.runtime.session.launch import relayed_stderr
from tests.refusals.scene import PIPELINE
from tests.support.homes import HomeSpec, batch_record, make_home
from tests.support.rebuilds import StubReplayer, StubRuntime

HEIGHTS = {80: 24, 120: 40}
WIDTHS = tuple(HEIGHTS)
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
BAR = re.compile(r"\r|[^\n━╸╺]*[━╸╺]+ +\d+/\d+ +(?:\d+:\d\d:\d\d|-:--:--)")
WORD = re.compile(r"[A-Za-z0-9]+")
VARIES = (
    (re.compile(r"/screens-\w{8}"), "/screens-________"),
    (re.compile(r"\b\d{8}T\d{6}-[0-9a-f]{6}\b"), "20260101T000000-abcdef"),
    (re.compile(r"the newest file is .* old"), "the newest file is 1.0 s old"),
    (re.compile(r"bundle.zip  [0-9.]+ KiB"), "bundle.zip  9.0 KiB"),
)
LONG = "watched/clicks_of_all_pages_and_of_all_countries"
CHECKPOINT = ".slackwater/streams/clicks/per_page/checkpoints/0001"
SCREENS = {
    "help": "--help",
    "help of a verb": "plan rebuild --help",
    "status": "status",
    "doctor": "doctor",
    "doctor of a checkpoint": f"doctor {CHECKPOINT} --sink out",
    "watch": f"watch {CHECKPOINT} --sink out --once",
    "inspect": "inspect per_page",
    "inspect a batch": "inspect per_page --batch 3 --sources --conf",
    "ledger": "ledger per_page",
    "offsets": "offsets per_page",
    "explain": "explain SW-KAFKA-001",
    "explain all": "explain",
    "evidence": "evidence per_page --out bundle.zip --force",
    "plan resume": "plan resume per_page",
    "plan rebuild": "plan rebuild per_page",
    "plan replay": "plan replay per_page --from batch:3",
    "prune": "prune --keep 0 --yes",
    "sinks": "sinks",
    "home accept": "home accept --moved",
    "unknown verb": "staus",
    "unknown code": "explain no-such",
    "unknown stream": "status nosuch",
}
LONGEST = ("explain all", "sinks")
PLAN, ADOPT = "plan rebuild per_page --at batch:4 --out plan.json", "adopt hourly --sink out --name hourly"
CHANGING = {
    "apply": (PLAN, "apply plan.json --yes"),
    "apply again": (PLAN, "apply plan.json --yes", "apply plan.json --yes"),
    "undo": (PLAN, "apply plan.json --yes", "undo OPERATION --yes"),
    "adopt": (ADOPT,),
    "release": (ADOPT, "release hourly --yes --i-stopped-it"),
}
DAMAGED = {"status": "status", "doctor": "doctor", "plan": "plan resume per_page", "ledger": "ledger --operations"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose path is equally long on each machine: a longer one is folded elsewhere."""
    made = Path(tempfile.mkdtemp(prefix="screens-", dir="/tmp"))
    monkeypatch.chdir(made)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    yield made
    shutil.rmtree(made)


class Screens:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch

    def taken(self, print_it: object) -> dict[str, str]:
        """What a command, or a function, prints on terminals, on one without colour, and into a pipe."""
        shown = {}
        for name, width, colour in (("pipe", 0, ""), *((str(one), one, "") for one in WIDTHS), ("80 plain", 80, "1")):
            self._patch.setenv("COLUMNS", str(width or 80))
            self._patch.setenv("LINES", str(HEIGHTS.get(width, 24)))
            self._patch.setenv("NO_COLOR", colour)
            stream = Terminal() if width else io.StringIO()
            self._patch.setattr(sys, "stdout", stream)
            self._patch.setattr(sys, "stderr", stream)
            if isinstance(print_it, str):
                main(print_it.split())
            elif callable(print_it):
                print_it()
            text = stream.getvalue()
            assert width or "\x1b" not in text
            text = BAR.sub("", CONTROLS.sub("", text))
            for pattern, same in VARIES:
                text = pattern.sub(same, text)
            shown[name] = "\n".join(line.rstrip() for line in text.split("\n"))
        assert shown.pop("80 plain") == shown["80"]
        return shown


@pytest.fixture
def screens(monkeypatch: pytest.MonkeyPatch) -> Screens:
    return Screens(monkeypatch)


def check_whole(shown: dict[str, str]) -> None:
    """Each line fits, all words are whole, and nothing but spaces and line ends is added or missing."""
    piped = shown["pipe"]
    for width in WIDTHS:
        text = shown[str(width)]
        assert [line for line in text.split("\n") if len(line) > width] == []
        typed = text.replace("\\\n", "\n")
        assert set(WORD.findall(typed)) <= set(WORD.findall(piped))
        assert "".join(typed.split()) == "".join(piped.split())


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str, folder: Path, screens: Screens, snapshot: SnapshotAssertion) -> None:
    make_home(folder)

    shown = screens.taken(SCREENS[name])

    if not name.startswith("help"):
        # argparse folds its pages at the same width in a pipe.
        check_whole(shown)
    if name not in LONGEST:
        assert shown == snapshot


@pytest.mark.parametrize("name", DAMAGED)
def test_screen_of_a_damaged_stream(name: str, folder: Path, screens: Screens, snapshot: SnapshotAssertion) -> None:
    make_home(folder, HomeSpec(planned=6, source="kafka", run="failed"))
    (folder / "out" / "_spark_metadata" / "5").write_text("torn")

    shown = screens.taken(DAMAGED[name])

    check_whole(shown)
    assert shown == snapshot


@pytest.mark.parametrize("name", CHANGING)
def test_screen_of_a_change(
    name: str, folder: Path, screens: Screens, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = StubRuntime(StubReplayer(folder / "clicks.py"))
    monkeypatch.setattr("slackwater.cli.verbs.apply.SparkRuntime", lambda *_: runtime)
    *before, last = CHANGING[name]

    def on_a_new_home() -> None:
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        make_home(folder, HomeSpec(planned=6, pipeline=PIPELINE))
        if ADOPT in CHANGING[name]:
            shutil.move(CHECKPOINT, "hourly")
            shutil.rmtree(".slackwater")
        with redirect_stdout(io.StringIO()) as printed, redirect_stderr(printed):
            assert [main(command.split()) for command in before] == [0] * len(before), printed.getvalue()
        operation = "".join(re.findall(VARIES[1][0], printed.getvalue())[:1])
        assert main(last.replace("OPERATION", operation).split()) == 0

    shown = screens.taken(on_a_new_home)

    check_whole(shown)
    assert shown == snapshot


def test_screen_of_check(folder: Path, screens: Screens, snapshot: SnapshotAssertion) -> None:
    changed = Change(
        "aggregate-added", Effect.NEEDS_REBUILD, "aggregate last(clicked_at) was added", place=f"{LONG}.max(clicked_at)"
    )
    command = f"slackwater plan rebuild {LONG} --pipeline '{folder}/app.py -- --day 1' --conf spark.sql.shuffle=8"
    streams = (
        CheckedStream(LONG, StreamVerdict(LONG, 6, "recorded", Verdict((changed,))), next=(f"rebuild it: {command}",)),
        CheckedStream("clicks/views", StreamVerdict("clicks/views", 6, "unreadable")),
    )

    shown = screens.taken(lambda: show(Format.TEXT, {}, lambda: check_page(CheckedPipeline("clicks.py", streams))))

    check_whole(shown)
    assert shown == snapshot
    piped = shown["pipe"].partition("rebuild it: ")[2].partition("\n")[0]
    copied = shown["80"].partition("rebuild it: ")[2].partition("\n\n")[0]
    assert shlex.split(copied.replace("\\\n", "")) == shlex.split(piped)


def test_screen_of_an_audit(screens: Screens, snapshot: SnapshotAssertion) -> None:
    as_planned = {"doubled": 0, "vanished": 0, "other": 0, "reached": True, "failed": None}
    drills = [
        {**as_planned, "drill": step.drill, "text": step.text, **found}
        for step, found in (
            (Step("after"), {}),
            (Step("twice"), {"doubled": 1234, "vanished": 1}),
            (Step("job"), {"reached": False}),
            (Step("line", 3, "pages.py:12"), {"failed": "AnalysisException: a column is missing"}),
        )
    ]
    stream = {
        "stream": LONG,
        "sink": {"kind": "postgres", "url": "postgresql://127.0.0.1/clicks", "table": "clicks_of_all_pages"},
        "rows": 1234,
        "guarantee": "exactly-once",
    }
    document = {
        "streams": [stream | {"drills": drills}, stream | {"drills": drills[::2]}],
        "without_reader": ["clicks/views"],
        "folder": "audits/20260101T000000",
    }

    shown = screens.taken(lambda: show(Format.TEXT, {}, lambda: audit_page(document)))

    # Two columns of a table fold side by side.
    assert sorted(shown["80"].split()) == sorted(shown["pipe"].split())
    assert max(map(len, shown["80"].split("\n"))) <= 80
    assert shown == snapshot


def test_screens_of_an_operation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_home(folder, HomeSpec(planned=6, pipeline=PIPELINE))
    runtime = StubRuntime(StubReplayer(folder / "clicks.py"))
    monkeypatch.setattr("slackwater.cli.verbs.apply.SparkRuntime", lambda *_: runtime)
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)

    assert main(["plan", "rebuild", "per_page", "--at", "batch:4", "--out", "plan.json"]) == 0
    operation = re.findall(VARIES[1][0], stream.getvalue())[0]
    for command in ("apply plan.json --yes", f"undo {operation} --yes", "ledger --operations", "status"):
        stream.write(f"$ {command}\n")
        main(command.split())

    text = CONTROLS.sub("", stream.getvalue())
    assert "0/" not in text.partition("$ undo")[2]
    assert [line for line in text.replace("\r", "\n").split("\n") if len(line) > 80] == []


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("width", WIDTHS)
def test_the_live_table_of_a_run(width: int, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    batch = batch_record(HomeSpec(), 5)._replace(stream=LONG)
    monkeypatch.setenv("COLUMNS", str(width))
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    display = LiveDisplay()
    display.state(LONG, "running")
    display.batch(batch)
    with display, relayed_stderr() as jvm:
        os.write(jvm, b"26/01/01 12:00:00 WARN Executor: a line of Spark's log\n")
        time.sleep(0.2)
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    PlainDisplay().batch(batch)

    text = CONTROLS.sub("", stream.getvalue())
    assert "WARN Executor: a line of Spark's log\n" in text
    assert plain.getvalue()[9:] == snapshot(name="plain")
    # The last of the tables that were drawn.
    assert [line.rstrip() for line in text.rpartition("stream ")[2].split("\n")] == snapshot


@pytest.mark.timeout(30)
@pytest.mark.parametrize("width", [0, 1, 2, 3, 4, 5, 20])
def test_nothing_is_lost_on_a_terminal_of_any_width(width: int) -> None:
    for text in (
        "next  slackwater plan rebuild clicks/per_page --out plan.json",
        "a" * 90,
        "- mv -T 'a b' 'c d e f g'",
    ):
        parts = [text[start:end] for _, start, end in folds(text, width)]
        assert "".join(parts).replace(" ", "") == text.replace(" ", "")
