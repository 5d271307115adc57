"""``slackwater init``: lays out an example project with input data."""

import ast
import errno
import runpy
import shutil
import stat
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

import slackwater
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import prepare, print_json, say, write_page
from slackwater.core.commands import command, mention
from slackwater.core.errors import EnvironmentMissing, Refused, UsageError
from slackwater.core.escaping import quoted
from slackwater.storage.local import missing_folders

_PACKAGE = Path(slackwater.__file__).resolve().parent
SETTINGS = """home = ".slackwater"

[spark]
"spark.sql.shuffle.partitions" = 2
"""
CLICKS_FILES = 10
WEATHER_FILES = 5
_UNUSABLE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}
)
WRITERS = (("make_clicks.py", "clicks", CLICKS_FILES), ("make_weather.py", "landing", WEATHER_FILES))
UPGRADES = {"clicks.py": "changes/upgraded_clicks.py", "weather.py": "changes/upgraded_gold.py"}


def init_project(folder: Path) -> dict[str, str]:
    """The files and folders, relative to the project, with their meaning. Raises Refused if the folder is not empty,
    UsageError if it cannot be written; nothing is left behind.
    """
    target = folder.absolute()
    existed = _require_empty(target)
    missing = missing_folders(target)
    try:
        for part in missing:
            part.mkdir(exist_ok=True)
        examples = examples_folder()
        for name in ("clicks.py", "weather.py", "my_job.py", "make_clicks.py", "make_weather.py"):
            shutil.copyfile(examples / name, target / name)
        (target / "upgrades").mkdir()
        for pipeline, change in UPGRADES.items():
            text = with_change(read_example(pipeline), read_example(change))
            (target / "upgrades" / pipeline).write_text(text, encoding="utf-8")
        (target / "slackwater.toml").write_text(SETTINGS, encoding="utf-8")
        for example, written, files in WRITERS:
            runpy.run_path(str(examples / example))["write"](target / written, files)
    except BaseException as error:
        for one in target.iterdir() if existed else [target]:
            if one.is_dir():
                shutil.rmtree(one, ignore_errors=True)
            else:
                one.unlink(missing_ok=True)
        for part in reversed(missing[:-1]):
            with suppress(OSError):
                part.rmdir()
        if isinstance(error, OSError) and error.errno in _UNUSABLE:
            raise _unwritable(target, "written", error) from error
        raise
    return {
        "clicks.py": f"a pipeline: clicks per page and minute, from the {CLICKS_FILES} files in clicks/",
        "weather.py": f"three stages: lines, readings, days, from the {WEATHER_FILES} files in landing/",
        "my_job.py": "an application of plain PySpark over clicks/, with a checkpoint of its own",
        "upgrades/": f"both pipelines with changed state, for {mention('plan', 'rebuild')}",
        "make_clicks.py": "writes more files to clicks/",
        "make_weather.py": "writes more files to landing/",
        "slackwater.toml": "settings: the home for ledger and checkpoints, Spark's own settings",
    }


def _require_empty(target: Path) -> bool:
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
            "An example project needs a new or empty folder; nothing was changed",
            where=str(target),
            expected="a folder that does not exist or is empty",
            found=found,
            hint=f"give a different folder: {command('init', 'DIR')}",
        )
    return existed


def _unwritable(target: Path, what: str, error: OSError) -> UsageError:
    return UsageError(
        "init-unwritable",
        f"The folder cannot be {what}: {error.strerror}",
        where=str(target),
        hint=f"give a folder that you may write to: {command('init', 'DIR')}",
    )


def init(*, folder: Path, shown_as: Format) -> int:
    prepare(None, shown_as)
    contents, target = init_project(folder), folder.absolute()
    change = [] if target == Path.cwd() else [f"cd {quoted(str(folder))}"]
    steps = [*change, command("run", "clicks.py", "--until-caught-up")]
    if shown_as is Format.JSON:
        laid = [{"path": path, "what": what} for path, what in contents.items()]
        print_json({"schema": "slackwater.init/1", "folder": str(target), "contents": laid, "next": steps})
        return 0
    width = max(map(len, contents))
    write_page("".join(f"{path:<{width}}  {what}\n" for path, what in contents.items()))
    for step in steps:
        say(f"next: {step}")
    return 0


def examples_folder() -> Path:
    """``examples/`` of the package or the checkout. Raises EnvironmentMissing."""
    for folder in (_PACKAGE / "_examples", _PACKAGE.parents[1] / "examples"):
        if (folder / "weather.py").is_file():
            return folder
    raise EnvironmentMissing(
        "examples-missing",
        "The example files are not next to the package",
        where=str(_PACKAGE),
        hint="reinstall slackwater",
    )


def story_module(name: str) -> ModuleType:
    if "examples" not in sys.modules:
        # Its modules import each other as examples.demo; in an installation the folder has another name.
        examples = ModuleType("examples")
        examples.__path__ = [str(examples_folder())]
        sys.modules["examples"] = examples
    return import_module(f"examples.demo.{name}")


def read_example(name: str) -> str:
    """The text of an example, such as ``changes/upgraded_gold.py``."""
    return (examples_folder() / name).read_text(encoding="utf-8")


def with_change(pipeline: str, change: str) -> str:
    """The pipeline with a function replaced by the change's only function.

    Decorators stay; missing imports are added.
    """
    new, text = _function(change)
    old, _ = _function(pipeline, new.name)
    lines = pipeline.splitlines()
    changed = "\n".join([*lines[: old.lineno - 1], text, *lines[old.end_lineno :]]) + "\n"
    return _with_imports(changed, change)


def with_stream_of_change(pipeline: str, change: str, *, renamed: str, stream: str) -> str:
    new, text = _function(change)
    function = text.replace(f"def {new.name}(", f"def {renamed}(", 1)
    return _with_imports(f"{pipeline}\n\n{function}\n\n\n{stream}", change)


def _function(text: str, name: str | None = None) -> tuple[ast.FunctionDef, str]:
    """The function of this name, or the only one; and its text without decorators."""
    found = [one for one in ast.parse(text).body if isinstance(one, ast.FunctionDef) and name in (None, one.name)]
    if len(found) != 1:
        raise ValueError(f"expected one function {name or ''}, found {len(found)}")
    return found[0], ast.get_source_segment(text, found[0]) or ""


def _with_imports(text: str, change: str) -> str:
    present = {ast.unparse(node) for node in _imports(text)}
    missing = [line for node in _imports(change) if (line := ast.unparse(node)) not in present]
    if not missing:
        return text
    lines = text.splitlines()
    first = _imports(text)[0].lineno - 1
    return "\n".join([*lines[:first], *missing, "", *lines[first:]]) + "\n"


def _imports(text: str) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
