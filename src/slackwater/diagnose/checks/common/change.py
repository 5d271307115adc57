"""The text of a change: what it is, what it does to kept state, and what makes the output right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from slackwater.core.commands import mention
from slackwater.core.finding import Risk, Severity
from slackwater.core.program import OperatorKind
from slackwater.core.verdict import ChangeGoal, Effect
from slackwater.diagnose.checks.common.rule import HEADINGS

GUIDE = 'Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"'


class Way(NamedTuple):
    """What to do where a goal makes the output right, and whether that is safe."""

    goal: ChangeGoal | None
    remedy: str
    safe: str


_COMPUTE = mention("plan", "rebuild", "STREAM", "--pipeline", "FILE")
_PROCESS = mention("plan", "reset", "STREAM", "--from", "earliest", "--pipeline", "FILE")
WAYS = (
    Way(
        "rebuild",
        f"`{_COMPUTE}` computes the state again with the new code; or bring the old code back. Where only a setting of "
        "the session differs, start with the old one: batches are replayed under the settings of their runs.",
        "yes; the plan shows which batches are read again, and the old checkpoint is kept until it is pruned.",
    ),
    Way(
        "reset",
        f"`{_PROCESS}` processes everything again; or bring the old code back, or give the changed stream a new name "
        "and a new output.",
        "the plan shows what happens to the output, and which rows the sources no longer have. A rebuild would not "
        "make the output right.",
    ),
    Way(
        None,
        "nothing, where rows of the old code may stay in the state and in the output.",
        "yes; nothing is changed.",
    ),
)


AGGREGATE: frozenset[OperatorKind] = frozenset({"aggregate"})
JOIN: frozenset[OperatorKind] = frozenset({"join"})
FUNCTION: frozenset[OperatorKind] = frozenset({"pandas-state", "transform-with-state", "groups-with-state"})


@dataclass(frozen=True, slots=True)
class ChangeText:
    """``effect`` is the gravest that the change can have, ``goal`` what makes the output right then.

    ``acceptable``: Spark can run the query on the kept state, at least in some cases, so that a user may accept it.
    ``in_files``: a checkpoint shows it, also where the program of the old query is not recorded. ``stateless``: it
    matters for a query without state, too. ``only_with`` are the kinds of operators that can have it, empty for all.
    """

    code: str
    meaning: str
    finds: str
    matters: str
    effect: Effect = Effect.NEEDS_REBUILD
    goal: ChangeGoal | None = "rebuild"
    acceptable: bool = True
    in_files: bool = False
    stateless: bool = False
    only_with: frozenset[OperatorKind] = frozenset()
    covers: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """As ``doctor`` shows the gravest case."""
        if self.effect <= Effect.COMPATIBLE:
            return Severity.INFO
        return Severity.WARNING if self.effect is Effect.CHANGES_ROWS else Severity.STOP

    @property
    def risk(self) -> Risk:
        """What Spark does if it is started all the same: wrong rows, or an error."""
        if self.effect <= Effect.COMPATIBLE:
            return "none"
        return "wrong" if self.acceptable else "stuck"

    @property
    def sections(self) -> dict[str, str]:
        """The text by heading, as rules and checks have it."""
        remedy, safe = self._remedy()
        confirm = f"`{mention('check', 'FILE')}` shows the old value and the new one."
        return dict(zip(HEADINGS, (self.finds, self.matters, confirm, remedy, safe, GUIDE), strict=True))

    def _remedy(self) -> tuple[str, str]:
        _, remedy, safe = next(way for way in WAYS if way.goal == self.goal)
        if self.effect <= Effect.COMPATIBLE:
            return "nothing; the stream starts.", safe
        if self.acceptable:
            remedy += f" `{mention('run', 'FILE', '--accept', self.code)}` starts with the state as it is."
            safe += " An accepted change mixes rows of the old code with rows of the new."
        return remedy, safe
