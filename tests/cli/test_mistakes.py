"""Mistakes of a user: each gives a code, a place or a comparison, and its exit code; never a traceback."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.cli.common.console import print_json
from slackwater.ledger.ledger import Ledger
from slackwater.operations.plan.document import digest_of
from tests.cli.conftest import Slackwater
from tests.support import warm_python
from tests.support.homes import STREAM, HomeSpec, make_home

FAILING = "import slackwater as sw\n\ndef helper():\n    raise ValueError('one')\n\nhelper()\n"


def test_debug_shows_the_users_own_frames_and_no_others(slackwater: Slackwater, tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(FAILING)

    done = slackwater("run", "pipeline.py", "--debug")

    assert done.code == 2
    *traceback, error, _hint = done.err.splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert [line for line in traceback if line.startswith("  File ")] == [
        '  File "<folder>/pipeline.py", line 6, in <module>',
        '  File "<folder>/pipeline.py", line 4, in helper',
    ]
    assert traceback[-1] == "ValueError: one"
    assert error.startswith("error pipeline-fails: ")


@pytest.mark.parametrize("verb", [("apply", "absent.json", "--yes"), ("plan", "rebuild", "absent")])
def test_debug_is_taken_by_the_other_verbs_that_read_a_pipeline(slackwater: Slackwater, verb: tuple[str, ...]) -> None:
    done = slackwater(*verb, "--debug")

    assert "Traceback" not in done.err
    assert done.err.startswith("error ")


def test_a_plan_of_another_home(slackwater: Slackwater, tmp_path: Path) -> None:
    plan = _plan(slackwater, tmp_path)
    document = json.loads(plan.read_text()) | {"stream": "clicks/other"}
    document.pop("digest")
    plan.write_text(json.dumps(document | {"digest": digest_of(document)}))

    done = slackwater("apply", "plan.json", "--yes", "--format", "json")

    assert (done.code, done.error["code"]) == (4, "stream-unknown")


def test_a_plan_file_can_be_named_after_a_batch(slackwater: Slackwater, tmp_path: Path) -> None:
    _plan(slackwater, tmp_path).rename(tmp_path / "replay-batch:3.json")
    done = slackwater("apply", "replay-batch:3.json")
    assert (done.code, "error unconfirmed" in done.err) == (2, True)


@pytest.mark.parametrize("arguments", [("qqq",), ("status", "--qqq")])
def test_a_word_like_no_other_gets_none(slackwater: Slackwater, arguments: tuple[str, ...]) -> None:
    done = slackwater(*arguments)

    assert done.code == 2
    assert "did you mean" not in done.err


def test_help_is_no_error(slackwater: Slackwater) -> None:
    for arguments in ((), ("--help",), ("status", "--help")):
        assert slackwater(*arguments).code == 0


@pytest.mark.parametrize("verb", [("status",), ("ledger",), ("offsets", "per_page"), ("plan", "rebuild", "per_page")])
def test_every_verb_takes_a_home(slackwater: Slackwater, tmp_path: Path, verb: tuple[str, ...]) -> None:
    make_home(tmp_path)
    shutil.move(tmp_path / ".slackwater", tmp_path / "elsewhere")

    for shown_as in ("text", "json"):
        done = slackwater(*verb, "--home", "elsewhere", "--format", shown_as)
        assert done.code in {0, 5}
        assert "ledger-missing" not in done.err


def _plan(slackwater: Slackwater, folder: Path) -> Path:
    make_home(folder)
    assert slackwater("plan", "rebuild", "per_page", "--out", "plan.json").code == 0
    assert json.loads((folder / "plan.json").read_text())["stream"] == "clicks/per_page"
    return folder / "plan.json"


# What is printed as JSON can be parsed by any parser, whatever numbers are in the data.


def test_floats_that_are_no_numbers_are_strings(capsys: pytest.CaptureFixture[str]) -> None:
    infinite = float("inf")
    print_json({"rows": [{"value": float("nan"), "all": (infinite, -infinite, 0.5)}], "count": 1})

    text = capsys.readouterr().out

    found = json.loads(text, parse_constant=pytest.fail)
    assert found == {"rows": [{"value": "NaN", "all": ["Infinity", "-Infinity", 0.5]}], "count": 1}


def test_a_raw_file_as_json(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)

    done = slackwater("inspect", STREAM, "--raw", "offsets/0", "--format", "json")

    assert done.code == 0
    assert (done.document["schema"], done.document["path"]) == ("slackwater.file/1", "offsets/0")
    assert done.document["text"].startswith("v1\n{")
    assert slackwater("inspect", STREAM, "--raw", "offsets/0").out == done.document["text"]


# Control characters and markup in data reach no terminal, whichever command shows them.


CLIPBOARD = "\x1b]52;c;ZWNobw==\x07"
CLEAR = "\x1b[2J\x9b2J\u202e[/x][bold]"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
WRITES = re.compile(r"sys\.std(?:out|err)\.write\((?P<what>.*)\)")
OF_OURS = (
    "printable(",
    "printable_bytes(",
    'document + "',
    "json.dumps",
    "render(made)",
    '"slackwater {',
    "scripts[shell]",
    "message}\\n",
)
"""Documents in JSON, static text, and what is escaped."""


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm_python.run(arguments, folder, {})


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home where a name, the lease, the owner file, offsets, sink, failure and checkpoint have control characters."""
    folder = tmp_path_factory.mktemp("controls") / f"in {CLEAR.replace('/', '')}"
    sink = {"kind": f"none{CLIPBOARD}", "name": CLEAR}
    home = make_home(folder, replace(HomeSpec(), sink=sink, run="failed"))
    checkpoint = home / "streams" / "clicks" / "per_page" / "checkpoints" / "0001"
    (checkpoint / "sources" / "0" / f"7{CLEAR.replace('/', '')}").write_text("v1\n")
    (checkpoint / "state" / "0" / "0" / f"9{CLIPBOARD}.delta").write_text("")
    (checkpoint / "offsets" / "5").write_text((checkpoint / "offsets" / "5").read_text() + CLIPBOARD)
    (folder / "out").mkdir(exist_ok=True)
    owner = {"stream_id": CLIPBOARD, "stream": f"other/{CLEAR}", "home": CLIPBOARD}
    (folder / "out" / "_slackwater.json").write_text(json.dumps(owner))
    (home / "streams" / "clicks" / "per_page" / "lease.json").write_text(json.dumps({"holder": CLIPBOARD}))
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        run = ledger.begin_run(STREAM, 1, f"4.1.3{CLIPBOARD}")
        ledger.end_run(run.id, "failed", f"no file {CLEAR} {CLIPBOARD}", failure="permanent", failure_code="x[/y]")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("status", "--verify"),
        ("status", STREAM, "--format", "json"),
        ("ledger",),
        ("ledger", STREAM, "--batches", "0.."),
        ("ledger", "--operations"),
        ("inspect", STREAM),
        ("inspect", STREAM, "--sources", "--operators", "--conf"),
        ("inspect", STREAM, "--raw", "offsets/5"),
        ("inspect", STREAM, "--raw", "offsets/5", "--format", "json"),
        ("offsets", STREAM),
        ("plan", "rebuild", STREAM),
        ("plan", "rebuild", STREAM, "--at", f"batch:{CLIPBOARD}"),
        ("plan", "reset", STREAM, "--from", "earliest", "--output", "keep"),
        ("prune", STREAM, "--yes"),
        ("stop", STREAM),
        ("run", f"{CLEAR}.py"),
        ("undo", CLIPBOARD),
        (CLIPBOARD,),
        ("status", "--home", f"{CLIPBOARD}{CLEAR}"),
    ],
    ids=" ".join,
)
def test_no_command_passes_them_on(project: Path, command: tuple[str, ...]) -> None:
    done = _run(project, *command)
    assert "Traceback" not in done.stderr
    assert "MarkupError" not in done.stderr
    assert RAW.search(done.stdout + done.stderr) is None, ascii(RAW.search(done.stdout + done.stderr))


def test_an_unknown_setting_is_shown_escaped(tmp_path: Path) -> None:
    (tmp_path / "slackwater.toml").write_text('"\\u001b]52;c;YQ==\\u0007" = 1\n')
    done = _run(tmp_path, "status")
    assert "settings-key" in done.stderr
    assert RAW.search(done.stderr) is None


def test_markup_in_a_reason_is_shown_as_it_is(project: Path) -> None:
    done = _run(project, "ledger", STREAM)
    assert done.returncode == 0
    assert "[/x][bold]" in done.stdout


def test_only_one_place_writes_to_the_terminal() -> None:
    source = Path(__file__).parents[2] / "src" / "slackwater"
    found = [
        f"{file.relative_to(source)}: {match['what']}"
        for file in sorted(source.rglob("*.py"))
        if file.name != "logs.py"
        for match in WRITES.finditer(file.read_text())
        if not any(part in match["what"] for part in OF_OURS)
    ]
    assert found == []
