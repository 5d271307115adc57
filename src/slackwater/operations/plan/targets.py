"""Targets of goals from what was typed, and back; and the content of the file that ``offsets:FILE`` names.

``last-written``, ``earliest``, ``latest``
    As they are.
``batch:N``
    The batch with this id.
``time:2026-01-31T00:00Z``
    ISO 8601, from 1970 to 9999, to the millisecond at most, with ``Z`` or an offset such as ``+01:00``: a machine's own
    time zone would give a command two meanings. A date alone is midnight of its zone: ``time:2026-01-31Z``.
``by:PT6H``
    ISO 8601 in days, hours, minutes and seconds before *now*, as Kafka's ``--by-duration`` counts. Both ``by:PT6H`` and
    ``by:-PT6H`` mean six hours back. A duration back to before 1970 is 1970.
``shift:-1000``
    From the current position: of each partition by so many offsets, of a file source by so many files.
``offsets:FILE``
    A JSON file of offsets by source, as ``parse_offsets`` describes it.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias, assert_never

from slackwater.core.errors import Refused, UsageError
from slackwater.core.targets import Target
from slackwater.core.units import EPOCH, iso_text
from slackwater.formats.text_log import shown
from slackwater.ledger.recording.batch_history import BatchHistory, offsets_by_source
from slackwater.sources.common.contract import SourceEntries

LARGEST = 2**63 - 1
RECORDED = "the recorded ranges"
TIME_EXAMPLE = "time:2026-01-31T00:00Z"
OFFSETS_EXAMPLE = '{"0": {"topic": {"0": 123}}}'
TARGETS = (
    f"last-written, earliest, latest, batch:N, {TIME_EXAMPLE}, by:PT6H, shift:-1000 or offsets:FILE",
    "the targets are listed in docs/targets.md",
)

_WORDS: Mapping[str, Target] = {
    "last-written": Target("last-written"),
    "earliest": Target("earliest"),
    "latest": Target("latest"),
}
_EXPECTED: Mapping[str, tuple[str, str]] = {
    "batch": ("batch: and the id of a batch", "for example batch:41"),
    "shift": ("shift: and an integer", "for example shift:-1000 for 1000 offsets or files back"),
    "offsets": ("offsets: and the name of a JSON file", "for example offsets:positions.json"),
}
_NUMBER = re.compile(r"[0-9]{1,19}")
_SIGNED = re.compile(r"[+-]?[0-9]{1,19}")
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::(?P<seconds>[0-5][0-9])(?:\.(?P<ms>[0-9]{1,3}))?)?"
_ZONE = r"Z|[+-](?:0[0-9]|1[0-8]):[0-5][0-9]"
_TIME = re.compile(rf"(?P<date>{_DATE})(?:T(?P<clock>{_CLOCK}))?(?P<zone>{_ZONE})?")
_FILE = re.compile("[^\0\ud800-\udc7f\udd00-\udfff]{1,4096}")
"""A name that can be encoded: surrogates other than those of ``surrogateescape`` cannot."""
_TIMES_MS = range(253_402_300_800_000)
_PART = "[0-9]{1,9}"
_DURATION = re.compile(
    rf"[+-]?P(?=.)(?:(?P<days>{_PART})D)?"
    rf"(?:T(?=.)(?:(?P<hours>{_PART})H)?(?:(?P<minutes>{_PART})M)?(?:(?P<seconds>{_PART})(?:\.(?P<ms>[0-9]{{1,3}}))?S)?)?"
)
_MS = timedelta(milliseconds=1)
_SECOND_MS, _MINUTE_MS, _HOUR_MS, _DAY_MS = 1000, 60_000, 3_600_000, 86_400_000


def parse_target(text: str) -> Target:
    """Raises UsageError (``target``)."""
    if text in _WORDS:
        return _WORDS[text]
    name, colon, value = text.partition(":")
    match name:
        case "batch" if _NUMBER.fullmatch(value) and int(value) <= LARGEST:
            return Target("batch", int(value))
        case "shift" if _SIGNED.fullmatch(value) and abs(int(value)) <= LARGEST:
            return Target("shift", int(value))
        case "offsets" if _FILE.fullmatch(value):
            return Target("offsets", file=value)
        case "time" if colon:
            return _time(text, value)
        case "by" if colon:
            return _by(text, value)
    raise _invalid(text, *_EXPECTED.get(name if colon else "", TARGETS))


def target_text(target: Target) -> str:
    match target.kind:
        case "last-written" | "earliest" | "latest":
            return target.kind
        case "batch":
            return f"batch:{target.number}"
        case "time":
            whole = target.number % _SECOND_MS == 0
            return f"time:{iso_text(target.number, 'seconds' if whole else 'milliseconds')}"
        case "by":
            return f"by:{_duration_text(target.number)}"
        case "shift":
            return f"shift:{target.number:+}" if target.number else "shift:0"
        case "offsets":
            return f"offsets:{target.file}"
        case _:
            assert_never(target.kind)


def parse_offsets(content: str, file: str) -> Mapping[str, str]:
    """The offsets in an ``offsets:FILE``: by source, as a compact JSON string. Raises UsageError (``target``).

    The file is a JSON object of sources as the offset log names them ("0" is the first) and offsets as Spark writes
    them: ``{"0": {"topic": {"0": 123}}, "1": {"logOffset": 5}}``. For Kafka: the next offset of each partition;
    partitions and sources that are not listed keep their positions. For a file source: the newest entry of its log that
    counts as read, -1 for none.
    """
    try:
        value: object = json.loads(content, object_pairs_hook=_unique, parse_constant=_no_number)
        items = value.items() if isinstance(value, dict) else ()
        offsets = {source: json.dumps(offset, separators=(",", ":")) for source, offset in items}
    except (ValueError, RecursionError) as error:
        raise _not_offsets(file, shown(str(error))) from error
    wrong = [f"{source}: {offset}" for source, offset in offsets.items() if not offset.startswith("{")]
    if wrong or not offsets:
        raise _not_offsets(file, shown(wrong[0] if wrong else content))
    return offsets


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is listed twice")
    return found


def _no_number(constant: str) -> object:
    raise ValueError(constant)


def _not_offsets(file: str, found: str) -> UsageError:
    return UsageError(
        "target",
        "The file is not a JSON object of offsets by source",
        where=shown(file),
        expected=OFFSETS_EXAMPLE,
        found=found,
        hint="the first source of the query is 0; its offset is JSON as in the offsets/ of a checkpoint",
    )


def _time(text: str, value: str) -> Target:
    found = _TIME.fullmatch(value)
    expected = "time: and an ISO 8601 date and time from 1970 to 9999, to the millisecond at most, with Z or an offset"
    time_ms = -1
    if found is not None:
        minute = f"{found['date']} {(found['clock'] or '00:00')[:5]}{found['zone'] or 'Z'}"
        # A date or time that does not exist, such as 24:00.
        with suppress(ValueError, OverflowError):
            since = datetime.strptime(minute, "%Y-%m-%d %H:%M%z") - EPOCH
            time_ms = since // _MS + int(found["seconds"] or 0) * _SECOND_MS + int((found["ms"] or "").ljust(3, "0"))
    if found is None or time_ms not in _TIMES_MS:
        raise _invalid(text, expected, f"for example {TIME_EXAMPLE}")
    target = Target("time", time_ms)
    if found["zone"] is None:
        raise _invalid(text, "a time with Z or an offset such as +01:00", f"for UTC: {target_text(target)}")
    return target


def _by(text: str, value: str) -> Target:
    found = _DURATION.fullmatch(value)
    if found is None:
        expected = "by: and an ISO 8601 duration in days, hours, minutes and seconds"
        raise _invalid(text, expected, "for example by:PT6H for six hours back, by:P1DT30M for a day and a half hour")
    counts = {"days": _DAY_MS, "hours": _HOUR_MS, "minutes": _MINUTE_MS, "seconds": _SECOND_MS}
    return Target(
        "by",
        sum(int(found[unit] or 0) * factor for unit, factor in counts.items()) + int((found["ms"] or "").ljust(3, "0")),
    )


def _duration_text(duration_ms: int) -> str:
    days, rest = divmod(duration_ms, _DAY_MS)
    hours, rest = divmod(rest, _HOUR_MS)
    minutes, rest = divmod(rest, _MINUTE_MS)
    seconds, milliseconds = divmod(rest, _SECOND_MS)
    fraction = f".{milliseconds:03}" if milliseconds else ""
    clock = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M")) if count)
    if seconds or fraction or not (days or clock):
        clock += f"{seconds}{fraction}S"
    return f"P{f'{days}D' if days else ''}{f'T{clock}' if clock else ''}"


def _invalid(text: str, expected: str, hint: str) -> UsageError:
    return UsageError("target", "This is not a target", expected=expected, found=shown(text), hint=hint)


NamedPosition: TypeAlias = tuple[Target, Mapping[str, str] | None]
"""A target, and the offsets in its file."""


class WantedPosition(NamedTuple):
    """``current`` are offsets of the newest committed batch, if any; sources may differ if all begin again. ``logs``
    are recorded entries of ``sources/<source>/``. With ``only_source`` other sources stay but are included, as a
    checkpoint has a line for each.
    """

    named: NamedPosition
    current: Mapping[str, str | None]
    logs: Mapping[str, SourceEntries]
    now_ms: int
    only_source: str | None = None


def position_target(text: str, batches: BatchHistory, written: int, read_file: Callable[[str], str]) -> NamedPosition:
    """``written`` is the newest batch.

    Raises UsageError (``target``), and Refused (``target-unknown``) for a batch that is not recorded.
    """
    target = parse_target(text)
    if target.kind == "offsets":
        return target, parse_offsets(read_file(target.file), target.file)
    if target.kind == "last-written":
        return Target("offsets", file=RECORDED), _recorded_ends(batches, written, text)
    if target.kind == "batch":
        return Target("offsets", file=RECORDED), _recorded_ends(batches, target.number - 1, text)
    return target, None


def _recorded_ends(batches: BatchHistory, batch: int, text: str) -> Mapping[str, str]:
    if batch not in batches.history.offsets:
        known = batches.batches
        raise Refused(
            "target-unknown",
            f"Where {text} starts is not recorded",
            expected=f"batch:{known[0] + 1} to batch:{known[-1] + 1}" if known else "earliest, as no batch is recorded",
            found=text,
            hint="earliest, latest, time:... and by:... need no recorded batch",
        )
    ends = offsets_by_source(batches.offset(batch))
    return {source: end for source, end in ends.items() if end is not None}


def log_text(log: Mapping[str, bytes]) -> dict[str, str]:
    return {name: content.decode("utf-8", "surrogateescape") for name, content in log.items()}
