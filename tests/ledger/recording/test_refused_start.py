"""A start that is refused leaves what is recorded of the stream as it was."""

import shlex
from pathlib import Path

import pytest

from slackwater.cli.main import main
from slackwater.ledger.ledger import Ledger
from tests.refusals.scene import PIPELINE
from tests.support.homes import STREAM, HomeSpec, make_home


@pytest.mark.parametrize(
    ("spec", "code"),
    [(HomeSpec(written=3, pipeline=PIPELINE), "sink-behind"), (HomeSpec(state=3, pipeline=PIPELINE), "state-lost")],
)
def test_a_refused_start_with_another_file_and_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, spec: HomeSpec, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    home = make_home(tmp_path, spec)
    assert main(["run", "clicks.py"]) != 0
    file = home / "streams" / STREAM / "stream.json"
    before = _record(home), file.read_bytes()
    capsys.readouterr()
    (tmp_path / "new code.py").write_text(PIPELINE)

    assert main(["run", "new code.py"]) != 0

    refused = capsys.readouterr().err
    assert f"error {code}" in refused
    assert (_record(home), file.read_bytes()) == before
    # The plan is one for the code that was to be started.
    line = next(line for line in refused.splitlines() if "slackwater plan" in line)
    command = shlex.split(line[line.index("slackwater plan") :])
    assert command[-2] == "--pipeline"
    assert Path(command[-1]).resolve() == tmp_path / "new code.py"
    assert main([*command[1:], "--format", "json"]) == 0
    assert (_record(home), file.read_bytes()) == before


def _record(home: Path) -> object:
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        return ledger.find_stream(STREAM)
