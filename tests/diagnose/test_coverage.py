"""Every failure of the catalogue is found, refused, or listed as not detectable with the reason."""

from pathlib import Path

from slackwater.diagnose.catalogue import known_failures
from slackwater.diagnose.error_texts import covering

ROOT = Path(__file__).resolve().parents[2]


def test_what_a_finding_covers_is_in_the_catalogue() -> None:
    assert set(covering()) <= set(known_failures())


def test_no_failure_is_left_out() -> None:
    assert [code for code, failure in known_failures().items() if code not in covering() and failure.how is None] == []


def test_what_is_not_found_has_its_code_or_its_reason() -> None:
    assert [code for code, failure in known_failures().items() if failure.how is not None and not failure.text] == []
