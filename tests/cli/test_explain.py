"""``slackwater explain``: every code of a finding and of an error, and what is said of one that there is not."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from slackwater.diagnose.catalogue import known_failures
from slackwater.runtime.run.failures import FailureCode
from tests.cli.conftest import Slackwater

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
        ("program-changed", 5, "bring the old code back; or give"),
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
