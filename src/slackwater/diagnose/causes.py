"""Joins a symptom with the files: a message has several causes, and the files decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from slackwater.core.commands import command
from slackwater.diagnose.catalogue import CATALOGUE
from slackwater.diagnose.doctor import Diagnosis, documented
from slackwater.diagnose.error_texts import Certainty, Symptom

State = Literal["confirmed", "known", "not-checked", "not-visible", "excluded"]
_RANKS: Mapping[State, int] = {"confirmed": 0, "known": 1, "not-checked": 1, "not-visible": 1, "excluded": 2}
"""The files come first; the likelihood decides between causes of which they say nothing."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A failure that a text may mean. ``confirmed``: the finding ``by`` shows it. ``excluded``: the check ``by`` found
    nothing. ``known``: the known defect ``by``. ``not-checked``: ``by`` says which fact is missing. ``not-visible``:
    files do not show it.
    """

    code: str
    title: str
    state: State
    by: str


@dataclass(frozen=True, slots=True)
class ExplainedError:
    symptom: Symptom
    causes: tuple[Cause, ...]

    @property
    def cause(self) -> Cause:
        return self.causes[0]


def explained(symptoms: Sequence[Symptom], diagnosis: Diagnosis | None) -> tuple[ExplainedError, ...]:
    """The symptoms with causes; ``diagnosis`` is of the failed stream, if given."""
    finders = covering()
    return tuple(ExplainedError(symptom, _causes(symptom, diagnosis, finders)) for symptom in symptoms)


def _causes(symptom: Symptom, diagnosis: Diagnosis | None, finders: Mapping[str, list[str]]) -> tuple[Cause, ...]:
    causes = [_cause(code, diagnosis, finders.get(code, [])) for code in symptom.codes]
    if symptom.says and causes[0].state in ("not-checked", "not-visible"):
        causes[0] = replace(causes[0], state="known", by=symptom.says)
    return tuple(sorted(causes, key=lambda cause: _RANKS[cause.state]))


def _cause(code: str, diagnosis: Diagnosis | None, finders: Sequence[str]) -> Cause:
    failure = CATALOGUE[code]
    if not finders:
        return Cause(code, failure.title, "not-visible", failure.text)
    if diagnosis is None:
        return Cause(code, failure.title, "not-checked", "no checkpoint and no stream was given")
    found = [one.finding.code for one in diagnosis.found if code in one.covers]
    if found:
        return Cause(code, failure.title, "confirmed", ", ".join(dict.fromkeys(found)))
    if failure.how is not None:
        # Finders see a part of it only: the code, or Spark, shows the rest.
        return Cause(code, failure.title, "not-visible", failure.text)
    missed = next((one for one in diagnosis.not_checked if one.code in finders), None)
    if missed is not None:
        return Cause(code, failure.title, "not-checked", missed.reason)
    return Cause(code, failure.title, "excluded", ", ".join(finders))


def covering() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in documented():
        for failure in one.covers:
            found.setdefault(failure, []).append(one.code)
    return found


SIGNS: Mapping[str, str] = {
    "LOG-16": "the program has no checkpointLocation, or another one at each start: the log names a temporary folder",
    "SRC-01": f"the source's oldest position is newer than the checkpoint's: {command('inspect', 'CHECKPOINT')}",
    "SRC-03": "the connector's own files next to the checkpoint do not have the newest batch",
    "SRC-06": "another application, or an older run of this one, reads with the same consumer group",
    "SINK-07": "the table has a commit of another writer at that time: DESCRIBE HISTORY NAME",
    "SHARE-01": "a second driver with the same checkpoint is running: list the applications of the cluster",
    "STORE-03": "only one driver uses the checkpoint, and the next start passes",
    "VER-04": "a jar is for another Spark, Scala or Kafka: ls $SPARK_HOME/jars; spark-submit --verbose",
    "VER-06": "the issue tracker of the code in the first frames has the message, and another release passes",
}
"""By codes that no file of a checkpoint shows."""


def signs_of(error: ExplainedError) -> Mapping[str, str]:
    """Signs of the remaining causes, the likeliest first; empty if text or files decided."""
    left = [cause for cause in error.causes if cause.state != "excluded"]
    is_decided = any(cause.state == "confirmed" for cause in left)
    is_alone = len(left) == 1 and error.symptom.certainty is not Certainty.POSSIBLE
    if is_decided or is_alone:
        return {}
    return {cause.code: SIGNS[cause.code] for cause in left if cause.code in SIGNS}
