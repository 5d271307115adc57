"""Loads a pipeline file or module, and finds its connectors, libraries and environment variables."""

import ast
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from importlib.abc import InspectLoader, Loader
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import NamedTuple
from zipimport import zipimporter

from slackwater import sinks
from slackwater.connectors.machine import pyspark_missing
from slackwater.core.commands import mention
from slackwater.core.errors import NotFound, PipelineError, SinkUnknown, SlackwaterError, UsageError
from slackwater.core.reference import reference_of, split_reference
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.pipeline import Pipeline, StreamDefinition
from slackwater.runtime.program.code_scopes import imported_files, read_source, variables_read
from slackwater.runtime.session import SessionOptions
from slackwater.sources import kinds
from slackwater.storage.local import exists, is_file

_CAPTURED = "slackwater.runtime.application.capture:captured"
"""Imported for applications only: it brings Spark."""
_LONGEST_MESSAGE = 1000
_HOW_TO_NAME = "give the path of a .py file, or the dotted name of a module that Python can import from here"


class LoadedPipeline(NamedTuple):
    """``reference`` is a path or module name, as recorded. ``runs_itself``: an application with its own session."""

    pipeline: Pipeline
    module: ModuleType
    reference: str
    file: Path
    connectors: tuple[str, ...]
    runs_itself: bool = False

    def selected(self, names: Sequence[str]) -> list[StreamDefinition]:
        streams = self.pipeline.streams
        unknown = [name for name in names if name not in streams]
        if unknown:
            raise NotFound(
                "stream-unknown",
                f"Pipeline {self.pipeline.name} has no stream of this name",
                expected="one of " + ", ".join(streams),
                found=unknown[0],
            )
        return [definition for name, definition in streams.items() if not names or name in names]


def is_application(reference: str) -> bool:
    """Return whether code or imports write streams and have no Pipeline.

    Installed modules count only if project and archives show neither. False for malformed files.
    """
    file, _ = locate(reference)
    try:
        trees = [ast.parse(read_source(one)) for one in (file, *imported_files(file)) if one.suffix == ".py"]
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        # Reported when the file is loaded.
        return False
    names = {name for tree in trees for name in _names(tree)}
    if not names & {_WRITES, _PIPELINE}:
        names = {name for tree in library_trees(trees) for name in _names(tree)}
    return _WRITES in names and _PIPELINE not in names


_WRITES, _PIPELINE = "writeStream", "Pipeline"


def _names(tree: ast.Module) -> set[str]:
    nodes = list(ast.walk(tree))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "slackwater"]
    known = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return (names if "slackwater" in known else names - {_PIPELINE}) | {
        alias.name for node in imports for alias in node.names
    }


def load(reference: str, ledger: Ledger | None = None, given: SessionOptions | None = None) -> LoadedPipeline:
    """Load the only pipeline in a file or module.

    ``given`` is for an application's own session. Raises PipelineError without exactly one importable pipeline; Refused
    if a query's checkpoint is not its stream's.
    """
    refuse_other_program(locate(reference)[0])
    if is_application(reference):
        captured: LoadedPipeline = resolve_name(_CAPTURED)(reference, ledger, given or SessionOptions())
        return captured
    code, arguments = split_reference(reference)
    if arguments:
        raise UsageError(
            "usage",
            "A pipeline file takes no arguments",
            where=code,
            found=" ".join(arguments),
            hint="read values from environment variables; an application that starts its own queries takes arguments",
        )
    file, name = locate(reference)
    module = _import(file, name)
    pipeline = _only_pipeline(module, file)
    of_sinks = {connector for stream in pipeline.streams.values() for connector in stream.sink.connectors}
    connectors = tuple(sorted({*pipeline.connectors, *of_sinks, *_formats_used(file)}))
    return LoadedPipeline(pipeline, module, str(file) if name is None else reference, file, connectors)


def full_reference(reference: str) -> str:
    code, arguments = split_reference(reference)
    file, name = locate(reference)
    return reference_of(str(file) if name is None else code, arguments)


def digest(reference: str) -> str:
    """SHA-256 of the file and the project's modules that it imports, from archives too. Runs nothing."""
    file, _ = locate(reference)
    digests = {sha256(_read(one)).hexdigest() for one in (file, *imported_files(file))}
    return digests.pop() if len(digests) == 1 else sha256(" ".join(sorted(digests)).encode()).hexdigest()


def environment_read(reference: str) -> tuple[str, ...]:
    """The variables read by ``os.environ`` or ``os.getenv``, sorted.

    Only constant names in the file are found; a malformed file has none.
    """
    file, _ = locate(reference)
    try:
        return variables_read(ast.parse(file.read_bytes()))
    except (SyntaxError, ValueError):
        # Reported with its line when the pipeline is loaded.
        return ()


def locate(reference: str) -> tuple[Path, str | None]:
    reference, _ = split_reference(reference)
    path = Path(reference)
    if path.suffix == ".py" or exists(path):
        if not is_file(path):
            raise PipelineError(
                "pipeline-absent", "There is no such pipeline file", where=str(path.absolute()), hint="check the path"
            )
        return path.absolute(), None
    sys.path[:0] = [str(Path.cwd())] if str(Path.cwd()) not in sys.path else []
    spec = spec_of(reference)
    if spec is None or spec.origin is None or not spec.has_location:
        raise PipelineError(
            "pipeline-absent", "There is no such pipeline file or module", where=reference, hint=_HOW_TO_NAME
        )
    return Path(spec.origin).absolute(), reference


def _import(file: Path, name: str | None) -> ModuleType:
    try:
        if name is not None:
            return importlib.import_module(name)
        # A file's neighbours can be imported, as when Python runs it itself.
        sys.path[:0] = [str(file.parent)] if str(file.parent) not in sys.path else []
        # First, so that a file without read permission is refused as such, and not as code that fails.
        _read(file)
        loader, module = _new_module(file)
        loader.exec_module(module)
    except SlackwaterError as error:
        error.where = error.where or place_in(file, error)
        raise
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "pyspark":
            raise pyspark_missing() from error
        raise PipelineError(
            "pipeline-import",
            f"The pipeline file imports a module that is not installed: {error.name}",
            where=place_in(file, error),
            hint=f"install {error.name} into {sys.prefix}",
        ) from error
    except ImportError as error:
        raise _sink_of_import(error, file) or _failed(error, file) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's own code may raise anything, SystemExit too; it becomes a message
        raise _failed(error, file) from error
    return module


def _new_module(file: Path) -> tuple[Loader, ModuleType]:
    # A name of its own: a pipeline called json.py must not replace the standard library's module.
    spec = importlib.util.spec_from_file_location(f"slackwater_pipeline_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise PipelineError(
            "pipeline-unreadable",
            "Python cannot import this file",
            where=str(file),
            expected="a file whose name ends in .py",
            found=file.name,
            hint="rename the file",
        )
    module = importlib.util.module_from_spec(spec)
    # Before the code runs: ``dataclasses`` looks up the module of a class there.
    sys.modules[spec.name] = module
    return spec.loader, module


def _failed(error: BaseException, file: Path) -> PipelineError:
    try:
        words = " ".join(str(error).split())[:_LONGEST_MESSAGE]
    except Exception:  # noqa: BLE001 - __str__ of an exception can be the user's own code
        words = ""
    reason = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return PipelineError(
        "pipeline-fails",
        "The pipeline file calls a function of Spark while it is imported, when there is no Spark session yet"
        if _is_without_session(error)
        else f"The pipeline file fails while it is imported: {reason}",
        where=place_in(file, error),
        hint=_NEEDS_SESSION if _is_without_session(error) else f"the whole traceback: {sys.executable} {file}",
    )


_NEEDS_SESSION = "make columns, such as F.expr(...), inside the stream's function: there is a session when it is called"


def _is_without_session(error: BaseException) -> bool:
    """Return whether the error is about a missing session: PySpark asserts it, or raises a condition."""
    condition = getattr(error, "getCondition", getattr(error, "getErrorClass", lambda: None))
    if "SESSION" in str(condition() or "") or "SPARK_CONTEXT" in str(condition() or ""):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return isinstance(error, AssertionError) and any("/pyspark/" in frame.filename for frame in last)


def _sink_of_import(error: ImportError, file: Path) -> SinkUnknown | None:
    """The sink of ``from slackwater.sinks import NAME``: Python replaces the module's own error."""
    name = re.search(r"cannot import name '(\w+)'", str(error))
    if error.name != sinks.__name__ or name is None:
        return None
    try:
        getattr(sinks, name[1])
    except SinkUnknown as unknown:
        unknown.where = place_in(file, error)
        return unknown
    return None


def _read(file: Path) -> bytes:
    try:
        return read_source(file)
    except OSError as error:
        raise PipelineError(
            "pipeline-unreadable",
            "The pipeline file cannot be read",
            where=str(file),
            found=error.strerror,
            hint="check that this user may read the file",
        ) from error


def place_in(file: Path, error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return f"{file}:{error.lineno}" if error.lineno else str(file)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file}:{lines[-1]}" if lines else str(file)


def _only_pipeline(module: ModuleType, file: Path) -> Pipeline:
    found = {id(value): value for value in vars(module).values() if isinstance(value, Pipeline)}
    if len(found) != 1:
        raise PipelineError(
            "pipeline-count",
            "A pipeline file defines exactly one slackwater.Pipeline",
            where=str(file),
            expected="one",
            found=", ".join(pipeline.name for pipeline in found.values()) or "none",
            hint='write: pipeline = slackwater.Pipeline("name"); an application that starts its own queries is '
            "recognised by .writeStream in its file or in what it imports; import there what it loads by a name "
            "that is computed",
        )
    pipeline = next(iter(found.values()))
    if not pipeline.streams:
        raise PipelineError(
            "pipeline-empty",
            f"Pipeline {pipeline.name} defines no stream",
            where=str(file),
            expected="a function below @pipeline.stream(sink=...)",
            found="none",
        )
    return pipeline


def _formats_used(file: Path) -> set[str]:
    """The formats in ``.format("...")``: jars must be on the class path before the JVM starts."""
    calls = (
        node
        for node in ast.walk(ast.parse(file.read_bytes()) if file.suffix == ".py" else ast.Module([], []))
        if isinstance(node, ast.Call)
    )
    names = {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "format"
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }
    return {name for kind in kinds() for name in kind.connectors if name in names}


MODULES_MAX = 300
"""A program that starts queries through more modules than this is not recognised by their code."""
_NOT_READ = sys.stdlib_module_names | {"pyspark", "py4j", "slackwater"}


def library_trees(trees: Iterable[ast.Module]) -> Iterator[ast.Module]:
    """Trees of imports, and of their own packages' imports. Missing and malformed modules are skipped."""
    queue = [name for tree in trees for name in _imported(tree, "", is_package=False)]
    roots = {name.split(".")[0] for name in queue} - _NOT_READ
    seen = set[str]()
    read = 0
    for name in queue:
        if name in seen or name.split(".")[0] not in roots or read >= MODULES_MAX:
            continue
        seen.add(name)
        try:
            # An archive compiles a module to find it.
            spec = spec_of(name)
            loader = spec.loader if spec is not None else None
            source = loader.get_source(name) if isinstance(loader, InspectLoader | zipimporter) else None
            if spec is None or source is None:
                continue
            tree = ast.parse(source)
        except (ImportError, OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        read += 1
        yield tree
        queue += _imported(tree, name, is_package=spec.submodule_search_locations is not None)


def spec_of(name: str) -> ModuleSpec | None:
    """The module's spec. Unlike ``importlib.util.find_spec``, does not import parent packages."""
    folders: list[str] | None = None
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for number, part in enumerate(parts, start=1):
        try:
            spec = PathFinder.find_spec(".".join(parts[:number]), folders)
        except KeyError:
            # A namespace package in a package asks its parent for its folders, and that is not imported.
            spec, folders = None, [f"{folder}/{part}" for folder in folders or ()]
            continue
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or ())
    return spec


def _imported(tree: ast.Module, module: str, *, is_package: bool) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            base = parts[: len(parts) - node.level + is_package] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            found += [name, *(f"{name}.{alias.name}" for alias in node.names)]
    split = [name.split(".") for name in found if name.strip(".")]
    return [".".join(each[:length]) for each in split for length in range(1, len(each) + 1)]


_DECLARATIVE = ("pyspark.pipelines", "dlt")
_OF_NOTEBOOKS = ("spark", "dbutils")
"""Names that a notebook has without defining them."""


def refuse_other_program(file: Path) -> None:
    """Raises PipelineError (``program-kind``) for Spark Declarative Pipelines and exported notebooks."""
    try:
        tree = ast.parse(read_source(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        # Reported when the file is loaded.
        return
    nodes = list(ast.walk(tree))
    imported = set(_imported(tree, "", is_package=False))
    if "slackwater" in imported:
        return
    if imported & set(_DECLARATIVE):
        raise _refused(
            "This is a file of Spark Declarative Pipelines, whose queries Spark itself starts: spark-pipelines run",
            file,
            "a slackwater.Pipeline, or a program that starts its own queries by .writeStream",
            f"{', '.join(sorted(imported & set(_DECLARATIVE)))} imported",
            "start it with spark-pipelines; or write its flows as streams of a pipeline file, as "
            f"{mention('init', 'DIRECTORY')} lays it out",
        )
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imports = [one for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for one in node.names]
    bound |= {alias.asname or alias.name.split(".")[0] for alias in imports}
    free = [] if "*" in bound else [name for name in _OF_NOTEBOOKS if name in used - bound]
    if free:
        raise _refused(
            f"This is code of a notebook: it uses {' and '.join(free)}, which it does not define",
            file,
            "a program that Python can run by itself",
            ", ".join(free),
            "write spark = SparkSession.builder.getOrCreate() at its beginning, and arguments in place of dbutils; or "
            "leave it in the notebook, and call slackwater.watch(spark, ledger=LOCATION) there",
        )


def _refused(message: str, file: Path, expected: str, found: str, way: str) -> PipelineError:
    return PipelineError(
        "program-kind",
        message,
        where=str(file),
        expected=expected,
        found=found,
        hint=f"{way}; a checkpoint that its queries have is examined by {mention('doctor', 'LOCATION')}, and recorded "
        f"by {mention('adopt', 'LOCATION')}",
    )
