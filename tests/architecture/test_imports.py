"""Who may import whom, and what starting the command line may not load."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import slackwater
from slackwater.sources import SOURCES
from tests.support.homes import make_home

SPARK_ALLOWED = ("runtime", "sinks", "audit")
HEAVY = (
    "pyspark",
    "py4j",
    "pandas",
    "pyarrow",
    "numpy",
    "sqlalchemy",
    "psycopg",
    "confluent_kafka",
    "deltalake",
    "pyiceberg",
    "s3fs",
)
LOADED_WITHOUT_SPARK = (
    *(f"slackwater.sinks.{module}" for module in ("files.sink", "iceberg.output", "postgres.sink")),
    *("slackwater.cli.verbs.run", "slackwater.cli.verbs.check", "slackwater.cli.verbs.audit"),
    *("slackwater.cli.verbs.apply", "slackwater.cli.verbs.plan"),
)
"""What must be able to say that Spark, or the extra of a sink, is missing."""
START_S_MAX = 20


def _imported_packages(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def _declared(root: Path) -> set[str]:
    """What pyproject.toml asks for, but for what only developers need. fsspec's stores and py4j come with theirs."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = [text for name, texts in project["optional-dependencies"].items() if name != "dev" for text in texts]
    return {canonicalize_name(Requirement(text).name) for text in project["dependencies"] + extras} | {"py4j"}


def _area(file: Path, root: Path) -> str:
    return file.relative_to(root / "src/slackwater").parts[0]


def test_each_layer_knows_only_those_below_it(root: Path) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=root,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyspark_is_imported_only_where_spark_runs(root: Path, source_files: list[Path]) -> None:
    offenders = [
        str(file.relative_to(root))
        for file in source_files
        if _area(file, root) not in SPARK_ALLOWED and {"pyspark", "py4j"} & set(_imported_packages(file))
    ]
    assert offenders == []


def test_only_the_entry_point_outside_the_command_line_imports_it(root: Path, source_files: list[Path]) -> None:
    offenders = [
        str(file.relative_to(root))
        for file in source_files
        if _area(file, root) not in {"cli", "__main__.py"} and "slackwater.cli" in file.read_text()
    ]
    assert offenders == []


def test_what_is_imported_is_asked_for(root: Path, source_files: list[Path]) -> None:
    distributions = packages_distributions()
    declared = _declared(root)
    offenders = [
        f"{file.relative_to(root)}: {package}"
        for file in source_files
        for package in sorted(set(_imported_packages(file)) - {"slackwater", "_typeshed"} - sys.stdlib_module_names)
        if not declared & {canonicalize_name(name) for name in distributions.get(package, [package])}
    ]
    assert offenders == []


def test_sinks_and_verbs_load_neither_spark_nor_a_client_before_they_use_it() -> None:
    program = (
        "import importlib, json, sys\n"
        "from slackwater import sinks\n"
        "for name in dir(sinks): getattr(sinks, name)\n"
        f"for module in {LOADED_WITHOUT_SPARK}: importlib.import_module(module)\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=START_S_MAX
    )
    # Tables of databases are described by SQLAlchemy, which everyone has; clients and Spark are extras.
    assert set(json.loads(done.stdout)) & set(HEAVY) == {"sqlalchemy"}


# The commands that read start on a machine without Spark and without Java.


@pytest.fixture
def without_spark(tmp_path: Path) -> dict[str, str]:
    """An environment where importing pyspark or pandas fails and no java is found."""
    absent = tmp_path / "absent"
    for name in ("pyspark", "py4j", "pandas"):
        (absent / name).mkdir(parents=True)
        (absent / name / "__init__.py").write_text(f"raise ImportError('{name} is not for this start')\n")
    kept = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "SPARK_HOME"}}
    return kept | {
        "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(absent)])),
        "PATH": str(tmp_path),
        "HOME": str(tmp_path),
        "SLACKWATER_HOME": str(tmp_path / "home"),
    }


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["status"], ["status", "--format", "json"], ["sinks"]], ids=" ".join
)
def test_it_starts_in_an_empty_folder(arguments: list[str], without_spark: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "slackwater", *arguments],
        cwd=tmp_path,
        env=without_spark,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=START_S_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_the_status_of_a_stream_into_files_imports_no_other_sink(tmp_path: Path) -> None:
    make_home(tmp_path)
    code = (
        "import sys; from slackwater.cli.main import main; code = main(['status']); print(*sys.modules); sys.exit(code)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    imported = {name.split(".")[2] for name in done.stdout.split() if name.count(".") > 1 and ".sinks." in name}
    assert {"files", "common"} <= imported
    assert imported.isdisjoint({"delta", "iceberg", "jdbc", "kafka", "postgres", "foreach_batch", "console"})


# Names that only one module may know.


SINK_LOG = "_spark_metadata"


def test_the_folder_of_the_file_sinks_manifest_is_spelled_in_one_module(root: Path, source_files: list[Path]) -> None:
    found = [str(file.relative_to(root)) for file in source_files if SINK_LOG in file.read_text()]
    assert found == ["src/slackwater/formats/compactible.py"]


# The public surface is what is documented, and each name of it is there.


DOCUMENTED = {"Pipeline", "SlackwaterError", "StreamContext", "__version__", "sinks", "triggers", "watch"}


def test_the_public_names_are_the_documented_ones() -> None:
    assert set(slackwater.__all__) == DOCUMENTED
    assert len(slackwater.__all__) == len(DOCUMENTED)


def test_every_public_name_resolves() -> None:
    assert [name for name in slackwater.__all__ if getattr(slackwater, name, None) is None] == []


def test_the_version_is_that_of_the_distribution() -> None:
    assert slackwater.__version__ == metadata.version("slackwater")


# No module outside of ``sources`` names a kind of source: what depends on the kind is asked of it.


HAVE_KINDS_OF_THEIR_OWN = ("sources", "sinks")
"""Sinks have kinds with the same names."""
OTHER_MEANINGS = {
    ("ledger/streams.py", "files"),  # the identity of a sink
    ("operations/actions/generations.py", "delta"),  # a file of the state
    ("operations/actions/batches.py", "number"),  # of a generation
    ("cli/verbs/ledger.py", "number"),  # of a generation
    ("cli/verbs/watch.py", "files"),  # a count of files
}
SPARKS_NAMES = ("FileStreamSource", "FileSource[", "KafkaV2", "ForTriggerAvailableNow", "logOffset", "textSocket")


def _outside(root: Path, source_files: list[Path]) -> Iterator[tuple[str, ast.Module]]:
    package = root / "src/slackwater"
    for file in source_files:
        name = str(file.relative_to(package))
        if not name.startswith(tuple(f"{one}/" for one in HAVE_KINDS_OF_THEIR_OWN)):
            yield name, ast.parse(file.read_text())


def _is_of_kind(module: str) -> bool:
    parts = module.split(".")
    return parts[:2] == ["slackwater", "sources"] and len(parts) > 2 and parts[2] != "common"


def _compared(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        compared: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            compared = [node.value]
        for one in compared:
            yield from (
                part.value for part in ast.walk(one) if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def test_no_module_imports_a_kind(root: Path, source_files: list[Path]) -> None:
    found = [
        f"{name}: {module}"
        for name, tree in _outside(root, source_files)
        for node in ast.walk(tree)
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if _is_of_kind(module)
    ]
    assert found == []


def test_no_module_compares_with_the_name_of_a_kind(root: Path, source_files: list[Path]) -> None:
    kinds = set(SOURCES.names())
    compared = {(name, text) for name, tree in _outside(root, source_files) for text in _compared(tree)}
    assert {(name, text) for name, text in compared if text in kinds} <= OTHER_MEANINGS


def test_no_module_knows_how_spark_names_a_kind(root: Path, source_files: list[Path]) -> None:
    found = [
        f"{name}: {node.value[:60]}"
        for name, tree in _outside(root, source_files)
        for docstrings in [{id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        if any(spark in node.value for spark in SPARKS_NAMES)
    ]
    assert found == []
