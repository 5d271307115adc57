"""Complaints in plain words: which cause is named first, and which texts are none."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest

from slackwater.diagnose.causes import explained
from slackwater.diagnose.error_texts import recognise
from slackwater.diagnose.errors.common.complaints import complaint_places, complaints, topics
from slackwater.diagnose.errors.common.symptom import Certainty, Level

TABLE = tomllib.loads(Path(__file__).with_name("complaints.toml").read_text())
SAID: list[tuple[str, str]] = [(text, code) for code, texts in TABLE["said"].items() for text in texts]
UNSAID: list[str] = TABLE["unsaid"]["none"]
DOUBLED = "After a restart of the job some rows are doubled in our table."


def _names(text: str) -> list[str]:
    return [name for name, _ in complaint_places(text)]


@pytest.mark.parametrize(("text", "code"), SAID)
def test_a_complaint_names_its_most_frequent_cause(text: str, code: str) -> None:
    found = recognise(text)

    assert explained(found, None)[0].cause.code == code
    assert found[0].certainty is Certainty.POSSIBLE


@pytest.mark.parametrize("text", UNSAID)
def test_what_is_no_complaint_is_not_recognised(text: str) -> None:
    assert not recognise(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{DOUBLED}\n\tat org.apache.spark.sql.execution.streaming.StreamExecution.run(StreamExecution.scala:1)",
        f"26/11/23 10:00:00 INFO MicroBatchExecution: {DOUBLED}",
        f"java.io.IOException: {DOUBLED}",
        f"Traceback (most recent call last):\n  {DOUBLED}",
        DOUBLED + " word" * 1000,
        "rows doubled restart",
    ],
)
def test_only_prose_is_read(text: str) -> None:
    assert not _names(text)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("The error is java.lang.OutOfMemoryError: Java heap space.", "APP-02"),
        ("It says: Connection refused.", "SRC-05"),
        ("It says: batch 3 doesn't exist\n", "LOG-06"),
    ],
)
def test_a_message_counts_more_than_a_complaint(error: str, code: str) -> None:
    found = recognise(f"{DOUBLED} {error}")

    assert found[0].codes[0] == code
    assert found[0].level is not Level.COMPLAINT


def test_each_topic_is_used_and_exists() -> None:
    used = {topic for complaint in complaints() for group in complaint.topics for topic in group}

    assert used == topics().keys()


def test_a_long_text_takes_little_time() -> None:
    text = "not delete checkpoint state count drop files process " * 75
    started = time.process_time()

    list(complaint_places(text))

    assert time.process_time() - started < 1.0
