"""A new kind of action that the executor, the plan's page or its inverse forgets is an error of mypy, not of a user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "slackwater"
MADE_UP = '''
@dataclass(frozen=True, slots=True)
class MadeUp:
    """An action without a handler."""

    kind: Literal["made-up"] = "made-up"


Action = MadeUp | '''


def test_an_action_without_a_handler_fails_mypy(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "slackwater", ignore=shutil.ignore_patterns("__pycache__"))
    model = tmp_path / "slackwater" / "model" / "actions.py"
    content = model.read_text()
    assert content.count("\nAction = ") == 1
    model.write_text(content.replace("\nAction = ", MADE_UP))

    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--follow-imports=silent"),
            *("--cache-dir", str(tmp_path / "cache"), "--config-file", os.devnull),
            *(f"slackwater/{file}" for file in ("apply/executor.py", "plan/inverse.py", "cli/render_plan.py")),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "MYPYPATH"}},
    )

    errors = [line for line in done.stdout.splitlines() if 'assert_never" has incompatible type "MadeUp"' in line]
    assert done.returncode == 1, done.stdout
    assert {line.partition(":")[0] for line in errors} == {
        "slackwater/apply/executor.py",
        "slackwater/plan/inverse.py",
        "slackwater/cli/render_plan.py",
    }, done.stdout
