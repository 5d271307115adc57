"""Bad input: every row of the tables gives its exit code and its error, and changes nothing."""

import contextlib
import io
import os
import re
import shlex
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from slackwater.cli.main import main
from tests.bad_input import (
    checkpoints,
    command_lines,
    first_steps,
    ledgers,
    operations,
    paths,
    pipelines,
    plans,
    processes,
    settings_values,
    sinks,
)
from tests.bad_input.case import LEDGER, Case, World
from tests.support.homes import make_home
from tests.support.warm_jvm import attached

TABLES = (
    checkpoints,
    command_lines,
    first_steps,
    ledgers,
    operations,
    paths,
    pipelines,
    plans,
    processes,
    settings_values,
    sinks,
)
CASES = [case for table in TABLES for case in table.CASES]
ERROR = re.compile(r'^error (?P<text>[a-z-]+): |^{"error": {"code": "(?P<json>[a-z-]+)"', re.MULTILINE)
WAIT_S = 15
SPARK_WAIT_S = 180
RECORDS = {
    "streams": "SELECT * FROM streams ORDER BY 1, 2, 3",
    "generations": "SELECT * FROM generations ORDER BY 1, 2, 3",
    "runs": "SELECT * FROM runs ORDER BY 1, 2, 3",
    "batches": "SELECT * FROM batches ORDER BY 1, 2, 3",
    "log_lines": "SELECT * FROM log_lines ORDER BY 1, 2, 3, 4",
    "operations": "SELECT * FROM operations ORDER BY 1, 2, 3",
}
"""Tables of the ledger that bad input may not change. Others say who looked, and when."""

PIPELINE = """import slackwater
pipeline = slackwater.Pipeline("clicks")
@pipeline.stream(sink=slackwater.sinks.files("parquet", "out"))
def per_page(spark): ...
"""

IGNORED = {"__pycache__", "ledger.db-wal", "ledger.db-shm", "lease.json"}
"""What Python and SQLite leave, and the record of who held a stream last."""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Where all rows run, one after the other: a ledger has absolute paths, so that a home cannot be copied."""
    with tempfile.TemporaryDirectory(prefix="bad-input-", ignore_cleanup_errors=True) as name:
        place = Path(name).resolve()
        _lay_project(place / "project")
        shutil.copytree(place / "project", place / "pristine", symlinks=True)
        yield place


def _lay_project(folder: Path) -> None:
    folder.mkdir()
    make_home(folder)
    (folder / "clicks.py").write_text(PIPELINE)
    # The code that made the batches is the present one, so that a plan needs no Spark to compare them.
    with closing(sqlite3.connect(folder / LEDGER)) as ledger, ledger:
        ledger.execute("UPDATE runs SET code = ?, settings = '{}'", (sha256(PIPELINE.encode()).hexdigest(),))
        ledger.execute("UPDATE batches SET run = 1")
    (folder / "clicks").mkdir(exist_ok=True)
    for number in range(6):
        file = folder / "clicks" / f"{number:03d}.json"
        written_ns = file.stat().st_mtime_ns
        file.write_text("{}\n")
        os.utime(file, ns=(written_ns, written_ns))
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        assert main(["plan", "rebuild", "per_page", "--out", "plan.json"]) == 0, said.getvalue()


@pytest.fixture
def project(place: Path) -> Path:
    """The project as it was before any row: only what the row before has changed is copied again."""
    project, pristine = place / "project", place / "pristine"
    _make_accessible(project)
    now, before = _statuses(project), _statuses(pristine)
    changed = [path for path in now if now[path] != before.get(path)]
    for path in sorted(changed, reverse=True):
        _remove(project / path)
    for path in sorted(path for path in before if now.get(path) != before[path]):
        _copy(pristine / path, project / path)
    return project


def _make_accessible(folder: Path) -> None:
    for root, names, _ in os.walk(folder):
        for name in names:
            path = Path(root, name)
            if not path.is_symlink() and path.stat().st_mode & 0o700 != 0o700:
                path.chmod(0o700)


def _statuses(folder: Path) -> dict[str, tuple[int, ...]]:
    """Kind, mode, owner, size and modification time of everything below a folder; of a folder, its kind and owner."""
    found = {}
    for root, names, files in os.walk(folder):
        for name in [*names, *files]:
            path = Path(root, name)
            status = path.lstat()
            is_folder = stat.S_ISDIR(status.st_mode)
            facts: tuple[int, ...] = () if is_folder else (status.st_size, status.st_mtime_ns)
            found[str(path.relative_to(folder))] = (status.st_mode, status.st_uid, *facts)
    return found


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def test_the_tables_have_at_least_300_rows() -> None:
    assert len(CASES) >= 300
    rows = [(case.arguments, tuple(step.name for step in case.given)) for case in CASES]
    assert [row for row in rows if rows.count(row) > 1] == []


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if not case.needs_process])
@pytest.mark.timeout(WAIT_S)
def test_bad_input(
    case: Case, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = _prepare(case, project)
    monkeypatch.chdir(world.directory)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    before = _files(project)

    code = main(world.arguments(case))

    shown = capsys.readouterr()
    _check(case, code, shown.out, shown.err)
    assert _changes(before, _files(project)) == set(case.creates)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.spark] if case.spark else [])
        for case in CASES
        if case.needs_process
    ],
)
def test_bad_input_of_a_process(case: Case, project: Path) -> None:
    world = _prepare(case, project)
    before = _files(project)

    code, out, err = _run(world, world.arguments(case), SPARK_WAIT_S if case.spark else WAIT_S)

    _check(case, code, out, err)
    if not case.spark:
        assert _changes(before, _files(project)) == set(case.creates)
    if case.followed:
        _follow(project, err)


def _run(world: World, arguments: list[str], wait_s: float) -> tuple[int, str, str]:
    """A command in a process of its own: exit code, stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "slackwater", *arguments],
        cwd=world.directory,
        env={**os.environ, **world.environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        preexec_fn=lambda: [step() for step in world.in_child],
        check=False,
        timeout=wait_s,
    )
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def _follow(project: Path, text: str) -> None:
    """Type the first command that is named; then the stream is in order."""
    command = re.search(r"slackwater ([^;\n]*)", text)
    assert command is not None, text
    world = World(project, project, attached(project))
    for arguments in (shlex.split(command[1]), ["status"]):
        code, out, err = _run(world, arguments, SPARK_WAIT_S)
        assert code == 0, err + out


def _prepare(case: Case, project: Path) -> World:
    world = World(project, project)
    for step in case.given:
        step.do(world)
    return world


def _check(case: Case, code: int, out: str, err: str) -> None:
    assert "Traceback" not in out + err, err
    shown = [match["text"] or match["json"] for match in ERROR.finditer(err)]
    assert (code, shown) == (case.exit_code, [case.error] if case.error else []), err + out
    assert case.says in out + err
    if case.error:
        assert any(word in err for word in ("hint", "expected", "found")), f"no hint: {err}"


def _changes(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _files(folder: Path) -> dict[str, str]:
    """Everything below a folder: kind, permissions and content."""
    found = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in IGNORED]
        for name in [*folders, *files]:
            if name not in IGNORED:
                path = Path(root, name)
                found[str(path.relative_to(folder))] = _fingerprint(path, folder)
    return found


def _fingerprint(path: Path, folder: Path) -> str:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"link to {path.readlink()}"
    if not stat.S_ISREG(status.st_mode):
        return f"{status.st_mode:o}"
    content = _records(path) if path == folder / LEDGER else path.read_bytes()
    return f"{status.st_mode:o} {sha256(content).hexdigest()}"


def _records(ledger: Path) -> bytes:
    """What the ledger records, however SQLite keeps it; of a file that is none, its bytes."""
    try:
        with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            rows = {
                table: connection.execute(query).fetchall() if table in tables else None
                for table, query in RECORDS.items()
            }
    except sqlite3.Error:
        return ledger.read_bytes()
    return repr(rows).encode()
