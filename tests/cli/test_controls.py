"""Control characters and markup in data reach no terminal, whichever command shows them."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.ledger.ledger import Ledger
from tests.support import warm_python
from tests.support.homes import STREAM, HomeSpec, make_home

CLIPBOARD = "\x1b]52;c;ZWNobw==\x07"
CLEAR = "\x1b[2J\x9b2J\u202e[/x][bold]"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")
WRITES = re.compile(r"sys\.std(?:out|err)\.write\((?P<what>.*)\)")
OF_OURS = ("printable(", 'document + "', "json.dumps", "render(made)", '"slackwater {', "scripts[shell]", "message}\\n")
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
