"""What the tests of added kinds share: operations that are killed, and distributions with an entry point."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from slackwater.operations.plan.plan import Plan
from tests.support.kill_points import count_commits, kill_points
from tests.support.rebuilds import Project

ROOT = Path(__file__).resolve().parents[2]


def points(every: int) -> range:
    """The changes to files before which an operation is killed: ``SLACKWATER_TEST_EVERY=1`` takes all."""
    step = int(os.environ.get("SLACKWATER_TEST_EVERY", every))
    return range(min(step, 5), sys.maxsize, step)


def killed_applies(project: Project, plan: Plan, every: int, apply: Callable[[Plan], object]) -> Iterator[bool]:
    """After each kill of an apply: whether it was then continued to its end; at last an apply that was not killed.

    What the caller has looked at is undone before the next one.
    """
    count_commits()
    killed, chosen = 0, points(every)
    for killed in kill_points(
        lambda: apply(plan), project.folder, lambda: undo_if_started(project, plan), every=chosen
    ):
        if killed % 2:
            apply(plan)
        yield bool(killed % 2)
    assert killed > chosen.step
    yield True


def killed_undos(project: Project, plan: Plan, every: int, apply: Callable[[Plan], object]) -> Iterator[int]:
    """After each kill of an undo, which was then continued: the number of the change that it was killed before."""
    count_commits()

    def applied() -> None:
        undo_if_started(project, plan)
        apply(plan)

    for killed in kill_points(lambda: project.undo(plan), project.folder, applied, every=points(every)):
        project.undo(plan)
        yield killed


def undo_if_started(project: Project, plan: Plan) -> None:
    """Undo the operation where an apply came far enough to record it."""
    with project.open() as workspace:
        started = any(one.id == plan.id for one in workspace.ledger.operations(plan.stream))
    if started:
        project.undo(plan)


class Installed:
    """A distribution that has a file as its only module, with one entry point."""

    def __init__(self, folder: Path, file: Path, group: str, kind: str, attribute: str) -> None:
        module = kind.replace("-", "_")
        described = folder / f"{module}-1.dist-info"
        described.mkdir(parents=True)
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
        (described / "entry_points.txt").write_text(f"[{group}]\n{kind} = {module}:{attribute}\n")
        (folder / f"{module}.py").write_text(file.read_text())
        self._path = os.pathsep.join([str(folder), str(ROOT)])

    def slackwater(self, arguments: Sequence[str], folder: Path, *, exit_code: int = 0) -> str:
        """What a command prints in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "slackwater", *arguments],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [self._path, os.environ.get("PYTHONPATH")]))},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == exit_code, done.stderr
        return done.stdout
