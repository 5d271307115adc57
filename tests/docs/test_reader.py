"""The reader of the documentation itself: which commands it finds, what it waits for, which differences it reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.comparing import differences
from tests.docs.reader import Reader, Step, Typed, steps_of

PAGE = """
```sh
one   # first
two &

```
```python
three
```
```console
$ four
its output
$ five
```
"""


def test_commands_are_those_of_shell_blocks() -> None:
    assert steps_of(PAGE) == [Step("one   # first"), Step("two &"), Step("four", ("its output",)), Step("five", ())]
    assert [step.in_background for step in steps_of(PAGE)] == [False, True, False, False]


def test_the_shell_keeps_its_folder_and_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "reader" / "deeper").mkdir(parents=True)
    with Reader(tmp_path / "reader") as reader:
        assert reader.type(Step("cd deeper")).code == 0
        assert reader.type(Step("pwd")).output.strip().endswith("/deeper")
        assert reader.type(Step("(exit 7)")).code == 7
        assert reader.type(Step("echo $?")).output == "7\n"
        typed = reader.type(Step("(sleep 0.2; echo batch=1 rows=3; sleep 60) &", ("batch=1 rows=5",)))
        assert typed.output == "batch=1 rows=3\n"


@pytest.mark.parametrize(
    ("command", "shown", "printed", "expected"),
    [
        ("slackwater run x", ("12:00 batch=1 rows=300",), "13:17 batch=2 rows=1,300", []),
        ("slackwater run x", ("running", "finished"), "running\nbatch\nfinished", ["not shown: finished"]),
        ("slackwater run x", ("running", "...", "finished"), "running\nbatch\nfinished", []),
        ("slackwater run x", ("running", "failed"), "running\nfinished", ["not printed: failed"]),
        ("slackwater run x", (), "WARNING: something", ["not shown: WARNING: something"]),
        ("slackwater apply p", ("next: slackwater run /home/me/try/x.py",), "next: slackwater run /tmp/a/try/x.py", []),
        ("slackwater status", ("  marks   planned 5",), "  marks   planned 5, written 4\n  lag  3 files", []),
        ("slackwater status", ("  then    slackwater run x",), "  next  slackwater run x", []),
        ("slackwater status", ("  lag   -",), "  marks   planned 5", ["not printed: lag"]),
    ],
)
def test_differences(command: str, shown: tuple[str, ...], printed: str, expected: list[str]) -> None:
    assert differences(Typed(Step(command, shown), 0, printed)) == expected
