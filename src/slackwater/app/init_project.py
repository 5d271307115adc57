"""Use case: lay out an example project with input data, to try Slackwater on."""

from __future__ import annotations

import errno
import runpy
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from slackwater.demo.examples import examples_folder, read_example, with_change
from slackwater.demo.places import SETTINGS
from slackwater.errors import Refused, UsageError

CLICKS_FILES = 10
WEATHER_FILES = 5
_UNUSABLE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}
)
UPGRADES = {"clicks.py": "changes/upgraded_clicks.py", "weather.py": "changes/upgraded_gold.py"}
"""Pipelines that are laid out a second time with a change, below ``upgrades/``."""


@dataclass(frozen=True, slots=True)
class Laid:
    """One file or folder of the project, relative to it, and what it is."""

    path: str
    what: str


@dataclass(frozen=True, slots=True)
class Project:
    """A project that was laid out. ``next`` are the commands to type, in order."""

    folder: str
    contents: tuple[Laid, ...]
    next: tuple[str, ...]


def init_project(folder: Path) -> Project:
    """Lay out the project in a new or empty folder.

    Raises Refused where the folder holds something, UsageError where it cannot be written. Nothing is left behind then.
    """
    target = folder.absolute()
    existed = _require_empty(target)
    try:
        target.mkdir(parents=True, exist_ok=True)
        contents = _write(target)
    except BaseException as error:
        _remove(target, existed=existed)
        if isinstance(error, OSError) and error.errno in _UNUSABLE:
            raise _unwritable(target, "written", error) from error
        raise
    change = () if target == Path.cwd() else (f"cd {folder}",)
    return Project(str(target), contents, (*change, "slackwater run clicks.py --until-caught-up"))


def _require_empty(target: Path) -> bool:
    """Whether the folder exists. Raises Refused where it holds something, or something else has its name."""
    found = None
    try:
        kind = target.lstat().st_mode
        existed = True
        if stat.S_ISDIR(kind):
            count = sum(1 for _ in target.iterdir())
            found = f"a folder with {count} entries" if count else None
        else:
            found = "a symbolic link" if stat.S_ISLNK(kind) else "a file"
    except FileNotFoundError:
        existed = False
    except OSError as error:
        raise _unwritable(target, "read", error) from error
    if found is not None:
        raise Refused(
            "init-not-empty",
            "An example project is laid out in a new or empty folder only; nothing was changed",
            where=str(target),
            expected="a folder that does not exist or is empty",
            found=found,
            hint="give another folder: slackwater init DIR",
        )
    return existed


def _unwritable(target: Path, what: str, error: OSError) -> UsageError:
    return UsageError(
        "init-unwritable",
        f"The folder cannot be {what}: {error.strerror}",
        where=str(target),
        hint="give a folder that you may write to: slackwater init DIR",
    )


def _write(target: Path) -> tuple[Laid, ...]:
    examples = examples_folder()
    for name in ("clicks.py", "weather.py", "make_clicks.py", "make_weather.py"):
        shutil.copyfile(examples / name, target / name)
    (target / "upgrades").mkdir()
    for pipeline, change in UPGRADES.items():
        text = with_change(read_example(pipeline), read_example(change))
        (target / "upgrades" / pipeline).write_text(text, encoding="utf-8")
    (target / "slackwater.toml").write_text(SETTINGS, encoding="utf-8")
    _writer_in("make_clicks.py")(target / "clicks", CLICKS_FILES)
    _writer_in("make_weather.py")(target / "landing", WEATHER_FILES)
    return (
        Laid("clicks.py", f"a pipeline: clicks per page and minute, from the {CLICKS_FILES} files in clicks/"),
        Laid("weather.py", f"three stages: lines, readings, days, from the {WEATHER_FILES} files in landing/"),
        Laid("upgrades/", "both pipelines with changed state, for slackwater plan rebuild"),
        Laid("make_clicks.py", "writes more files to clicks/"),
        Laid("make_weather.py", "writes more files to landing/"),
        Laid("slackwater.toml", "settings: the home for ledger and checkpoints, Spark's own settings"),
    )


def _writer_in(example: str) -> Callable[[Path, int], None]:
    """``write(folder, files)`` of an example that makes input."""
    write: Callable[[Path, int], None] = runpy.run_path(str(examples_folder() / example))["write"]
    return write


def _remove(target: Path, *, existed: bool) -> None:
    """Remove what was laid out; the folder was new or empty before."""
    if not existed:
        shutil.rmtree(target, ignore_errors=True)
        return
    for path in target.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
