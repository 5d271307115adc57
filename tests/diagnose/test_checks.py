"""Each check fires on an edited checkpoint and not on its near neighbours; its texts are complete."""

import json
import pkgutil
from pathlib import Path

import pytest

from slackwater.core.facts import Facts, Severity
from slackwater.diagnose import checks as package
from slackwater.diagnose import doctor, number_line
from slackwater.diagnose.checks import code
from slackwater.diagnose.checks.common.check import CODE, Check
from slackwater.diagnose.doctor import checks, diagnose
from slackwater.facts.collect import facts_of_location
from slackwater.storage.open import open_read_store
from tests.diagnose.cases import Case, all_cases
from tests.support.corpus import VERSIONS, corpus_cases, corpus_folder, kept_cases

CASES = list(all_cases())
EACH = pytest.mark.parametrize("check", checks(), ids=lambda check: check.code)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.name}")
def test_it_fires_where_it_should(case: Case, tmp_path: Path) -> None:
    found = diagnose(case.facts(tmp_path)).found

    mine = [one for one in found if one.finding.code == case.code]
    assert bool(mine) is case.fires, [one.finding for one in found]
    if case.fires:
        said = json.dumps([str(one) for one in mine])
        assert all(part in said for part in case.says), said


@EACH
def test_it_has_a_case_on_which_it_fires_and_a_neighbour(check: Check[Facts]) -> None:
    mine = [case for case in CASES if case.code == check.code]
    assert any(case.fires for case in mine)
    assert any(not case.fires for case in mine)


def test_no_file_is_left_out() -> None:
    assert all(CODE.fullmatch(check.code) for check in checks())
    files = {module.name for module in pkgutil.iter_modules(package.__path__) if not module.ispkg}
    assert {area.__name__.rpartition(".")[2] for area in (*number_line.AREAS, *doctor.AREAS, code)} == files


def test_the_repository_has_every_case_that_is_edited() -> None:
    for version in VERSIONS:
        assert {case.corpus for case in CASES if case.version == version} <= kept_cases(version)


@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version in VERSIONS for name in corpus_cases(version)]
)
def test_nothing_is_wrong_with_what_spark_wrote(version: str, name: str) -> None:
    facts = facts_of_location(open_read_store(str(corpus_folder(version, name) / "checkpoint")), None)

    serious = [one.finding for one in diagnose(facts).found if one.finding.severity is not Severity.INFO]

    assert serious == []
