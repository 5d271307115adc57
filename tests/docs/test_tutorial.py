"""The tutorial, typed as it is written: every command works, and prints what the page shows."""

from pathlib import Path

import pytest

from examples.demo.compare import rows_of
from tests.docs.comparing import differences
from tests.docs.reader import ROOT, Reader, steps_of
from tests.support.warm_jvm import attached

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
EXIT_CODES = {"diff": 1, "slackwater status": None}
"""``None``: any. The exit code of ``status`` depends on the state of the stream."""


@pytest.mark.spark
def test_the_tutorial_word_for_word(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    steps = steps_of(PAGE)
    killed = False

    def attach(where: Path) -> dict[str, str]:
        """The run that is killed has a JVM of its own, which exits with it."""
        return attached(where) if killed else {}

    with Reader(folder, attach) as reader:
        for number, step in enumerate(steps):
            typed = reader.type(step)
            killed = killed or step.command.startswith("kill ")
            assert differences(typed) == [], f"$ {step.command}\n{typed.output}"
            asked = number + 1 < len(steps) and steps[number + 1].command == "echo $?"
            expected = 5 if asked else next((EXIT_CODES[name] for name in EXIT_CODES if name in step.command), 0)
            assert expected in (None, typed.code), f"$ {step.command}\n{typed.output}"
    rows = rows_of(folder / "try" / "out" / "per_page")
    # Every minute and page is counted once, by the old code or by the new one.
    counted = [(dict(row)["start"], dict(row)["page"]) for row in rows]
    assert len(counted) == len(set(counted)) == rows.total()
    assert {"last" in dict(row) and dict(row)["last"] is not None for row in rows} == {True, False}
