"""Compares recorded programs with the present one: whether a rebuild makes the output right, and whose rows are others.

A rebuild that does not make it right would only hide the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slackwater.core.errors import Refused
from slackwater.core.records import StreamRecord
from slackwater.core.state_programs import PROGRAM, digest_of, program_of_batch
from slackwater.core.verdict import Effect
from slackwater.diagnose.program_changes import recorded_verdict
from slackwater.diagnose.refusal import NO_GOAL, ways_with
from slackwater.ledger.ledger import Ledger
from slackwater.sinks.common.contract import of_any_query
from slackwater.sinks.common.registry import open_output


def check_restorable(
    ledger: Ledger, stream: StreamRecord, target: int | None, program: Mapping[str, object] | None, reference: str
) -> None:
    """Raises Refused (``rebuild-insufficient``) where rows up to batch ``target`` do not fit those of the program.

    ``None``: the newest batch that is recorded as committed; -1: all output is written again, by one program. Nothing
    is refused where a program is not recorded.
    """
    generation = ledger.generation(stream.full_name, stream.current_generation)
    batch = ledger.newest_entry(stream.full_name, "commits") if target is None else target
    found = recorded_verdict(program_of_batch(generation.programs, batch), program)
    if batch < 0 or found.effect < Effect.NOT_RESTORABLE:
        return
    traits = of_any_query(open_output(stream.sink)).traits
    ways = ways_with(stream.full_name, reference, traits, is_watched=stream.is_watched, session=stream.session)
    raise Refused(
        "rebuild-insufficient",
        f"A rebuild of stream {stream.full_name} would not make its output right: "
        + "; ".join(one.text for one in found.changes if one.effect is Effect.NOT_RESTORABLE),
        hint="\n".join(ways.lines(found)) or NO_GOAL,
    )


def compared_programs(ledger: Ledger, stream: StreamRecord, program: Mapping[str, object] | None) -> dict[str, bool]:
    """By the digest of each of the stream's recorded programs whether its rows are those of the present ``program``.

    Unlike digests of optimised plans, programs can be compared across releases of Spark: that shows a setting which the
    query reads from a file that is no code.
    """
    if program is None:
        return {}
    entries = (entry for one in ledger.generations(stream.full_name) for entry in one.programs or ())
    recorded: list[Any] = [entry[PROGRAM] for entry in entries if isinstance(entry.get(PROGRAM), Mapping)]
    return {digest_of(one): recorded_verdict(one, program).effect <= Effect.COMPATIBLE for one in [*recorded, program]}
