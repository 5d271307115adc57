"""Who may import whom, and what starting the command line may not load."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
    *(
        "slackwater.cli.verbs.run",
        "slackwater.cli.verbs.check",
        "slackwater.cli.verbs.audit",
    ),
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
    """The package below ``slackwater`` that a file belongs to."""
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


@pytest.mark.parametrize("module", ["slackwater", "slackwater.cli.main"])
def test_starting_loads_nothing_heavy(module: str) -> None:
    program = f"import json, sys, {module}; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=START_S_MAX
    )
    assert set(json.loads(done.stdout)) & set(HEAVY) == set()


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
