"""Streams and checkpoints with their diagnoses, and the exit code that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slackwater.core.errors import SlackwaterError
from slackwater.core.facts import Facts
from slackwater.diagnose.causes import ExplainedError
from slackwater.diagnose.doctor import Diagnosis

HEALTHY, FOUND, NOT_ALL_CHECKED = 0, 1, 5


@dataclass(frozen=True, slots=True)
class Examined:
    """One stream or checkpoint with its facts and its diagnosis, or with the error why it could not be read.

    ``errors`` are the causes of the failure whose text was given, or of the last run, if that has failed.
    ``own_codes`` are those of errors of Slackwater's own in that text. ``unrecognised``: a text was given, and no known
    failure is in it; ``read`` is what the text says of the query.
    """

    name: str
    facts: Facts | None = None
    diagnosis: Diagnosis | None = None
    error: SlackwaterError | None = None
    errors: tuple[ExplainedError, ...] = ()
    own_codes: tuple[str, ...] = ()
    unrecognised: bool = False
    read: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def exit_code(self) -> int:
        """Its own exit code; a stream that cannot be read has not been checked."""
        if self.errors or self.own_codes:
            return FOUND
        if self.diagnosis is None:
            return NOT_ALL_CHECKED
        if self.diagnosis.problems:
            return FOUND
        return NOT_ALL_CHECKED if self.diagnosis.not_checked else HEALTHY


def exit_code(examined: Sequence[Examined]) -> int:
    """The exit code for all streams: findings take precedence over what could not be checked."""
    codes = {one.exit_code for one in examined}
    return next((code for code in (FOUND, NOT_ALL_CHECKED) if code in codes), HEALTHY)
