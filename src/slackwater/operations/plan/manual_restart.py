"""The start position of a manual restart, and its effects.

A manual restart is a new checkpoint and a query that starts there. It loses three things. Batch ids restart at 0, and a
sink keyed by them skips every id it has; Spark's file sink then does not even run the batch, so that no state is
written (measured: the first batch not skipped fails with CANNOT_LOAD_STATE_STORE). State starts empty. The watermark
restarts, so that rows are counted that would have been dropped. A new output directory avoids only the first.

w is the newest batch in the sink, p the batch after which the new query reads, b the first batch whose rows matter
after w. New batches 0..w are skipped. Rows of b..p are lost. Batches p+1..w are read twice.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from slackwater.core.checkpoint import SourceFile
from slackwater.core.units import batch_range, utc_text
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.operations.plan.plan import BEFORE_ALL
from slackwater.sources import kind_named
from slackwater.sources.common.contract import SourceRange

Risk = Literal["skip", "loss", "duplicate", "wrong", "stuck", "none"]
Output = Literal["same", "new", "any"]


class Effect(NamedTuple):
    """``batches`` of a skip are the new checkpoint's, else recorded batches. ``rows`` are from progress events."""

    output: Output
    risk: Risk
    text: str
    batches: tuple[int, int] | None = None
    rows: int | None = None


class RestartFacts(NamedTuple):
    """``written``: w; ``after``: p; ``contributing``: b; -1 for none. ``watermark_ms`` is after w.
    ``not_reproducible``: why state cannot be recomputed. ``batches_skipped``: the sink skips known ids.
    """

    written: int
    after: int
    contributing: int | None
    stateful: bool
    source_kinds: tuple[str, ...]
    input_rows: Mapping[int, int]
    watermark_ms: int = 0
    not_reproducible: str | None = None
    batches_skipped: bool = True


def effects_of(facts: RestartFacts) -> tuple[Effect, ...]:
    effects = [*_skipped(facts), *_forgotten(facts), *_read_again(facts)]
    if facts.stateful and facts.watermark_ms > 0:
        text = (
            f"the watermark, {utc_text(facts.watermark_ms)}, starts again: rows that the stream would drop as late "
            "are counted, and the windows that they belong to, which the old output has, are written a second time"
        )
        effects.append(Effect("new", "wrong", text))
    if not any(effect.output in {"new", "any"} for effect in effects):
        effects.append(Effect("new", "none", "nothing is lost and nothing is written twice"))
    if facts.not_reproducible is not None:
        text = f"reading again does not give the same state: {facts.not_reproducible}"
        effects.append(Effect("any", "wrong", text))
    found = dict.fromkeys(kind_named(kind).restart_effect for kind in sorted(set(facts.source_kinds)))
    return (*effects, *(Effect("any", risk, text) for risk, text in found))


def _skipped(facts: RestartFacts) -> list[Effect]:
    w, again = facts.written, facts.written - facts.after
    if w < 0 or not facts.batches_skipped:
        return []
    text = (
        f"the new checkpoint counts from batch 0, and the sink has batches up to {w}: it skips new {batch_range(0, w)} "
        "silently, and the rows that they read are lost"
    )
    if again > 0:
        left = w + 1 - again
        following = "1 batch" if left == 1 else f"{left} batches"
        new = "no new input" if left == 0 else f"the next {following}, of new input,"
        text += (
            f"; the input of {batch_range(facts.after + 1, w)} comes first: in batches as before, these and {new} are "
            "skipped; in larger batches, more new input is"
        )
    stuck = (
        f"a batch that is skipped writes no state: new batch {w + 1}, the first that is not, needs the state of batch "
        f"{w} and fails (CANNOT_LOAD_STATE_STORE), so that nothing is ever written"
    )
    effects = [Effect("same", "skip", text, (0, w)), Effect("same", "stuck", stuck, (w + 1, w + 1))]
    return effects if facts.stateful else effects[:1]


def _forgotten(facts: RestartFacts) -> list[Effect]:
    first, last = facts.contributing, facts.after
    if not facts.stateful or last < 0 or (first is not None and first > last):
        return []
    if first is None:
        text = "the state starts empty; which rows of earlier batches still matter is not recorded"
        return [Effect("any", "loss", text)]
    rows = _rows(facts, first, last)
    text = (
        f"the state starts empty: of the {rows:,} rows that {batch_range(first, last)} read, those that still matter "
        "(in open windows, as keys seen, to be joined) are lost, and later output lacks them"
    )
    return [Effect("any", "loss", text, (first, last), rows)]


def _read_again(facts: RestartFacts) -> list[Effect]:
    first, last = facts.after + 1, facts.written
    if first > last:
        return []
    rows = _rows(facts, first, last)
    read = f"{batch_range(first, last)} ({rows:,} rows) {'is' if first == last else 'are'} read again"
    if facts.stateful:
        partly = " from these rows alone" if first > 0 else ""
        text = f"{read}, and what the old output has of them is computed again{partly}, so that it is written twice"
        return [Effect("new", "duplicate", text, (first, last), rows)]
    same = f"{read}: as far as that falls to new batches after {last}, it is written a second time"
    new = f"{read} and written twice"
    return [
        Effect("same", "duplicate", same, (first, last), rows),
        Effect("new", "duplicate", new, (first, last), rows),
    ]


def _rows(facts: RestartFacts, first: int, last: int) -> int:
    return sum(rows for batch, rows in facts.input_rows.items() if first <= batch <= last)


class SourcePosition(NamedTuple):
    """``offset`` is Spark's string. ``files_read`` before the position is ``None`` if not all are recorded;
    ``files_to_come`` were recorded after it.
    """

    source: str
    kind: str
    offset: str | None
    files_read: int | None = None
    files_to_come: tuple[SourceFile, ...] = ()


def position_after(batches: BatchHistory, batch: int) -> tuple[SourcePosition, ...]:
    """The position behind a batch; ``BEFORE_ALL``: the start of the first batch."""
    if not batches.batches:
        return ()
    if batch > BEFORE_ALL:
        ends = offsets_by_source(batches.offset(batch))
        return tuple(_position(batches, source, offset) for source, offset in ends.items())
    oldest = offsets_by_source(batches.offset(batches.batches[0]))
    # Before batch 0; Kafka's ``latest`` of that time has no other record.
    logs = batches.history.sources
    starts = {source: batches.kind(source, end).initial(logs.get(source, {})) for source, end in oldest.items()}
    return tuple(_position(batches, source, offset) for source, offset in starts.items())


def _position(batches: BatchHistory, source: str, offset: str | None) -> SourcePosition:
    log = batches.history.sources.get(source, {})
    kind = batches.kind(source, offset)
    before = SourceRange(source, None, offset, log)
    newest = offsets_by_source(batches.offset(batches.batches[-1])).get(source)
    later = kind.files(SourceRange(source, offset, newest, log))
    if not later and not kind.files(SourceRange(source, None, newest, log)):
        return SourcePosition(source, kind.kind, offset)
    read = None if kind.unrecorded(before) else len(kind.files(before))
    return SourcePosition(source, kind.kind, offset, read, later)
