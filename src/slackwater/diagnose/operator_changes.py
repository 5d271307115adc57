"""Compares a stateful operator with its state's: window, watermark, keys, aggregates, join, schemas."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from slackwater.core.program import InputShape, OperatorShape, Traced, Watermark, Window
from slackwater.core.verdict import Change, ChangeGoal, Effect

_KINDS = {
    "aggregate": "aggregation",
    "deduplicate": "deduplication",
    "deduplicate-within-watermark": "deduplication within the watermark",
    "join": "join",
    "limit": "limit",
    "pandas-state": "applyInPandasWithState",
    "transform-with-state": "transformWithState",
    "groups-with-state": "function with state",
}


_SOURCE = re.compile(r"\b(source ?)([01])\b")


def operator_words(operator: OperatorShape) -> str:
    """The operator in words, such as ``aggregation by window, station``."""
    names = ", ".join(key.name or key.text for key in operator.keys)
    word = f"{operator.join_type} join" if operator.kind == "join" else _KINDS[operator.kind]
    return f"{word} {'on' if operator.kind == 'join' else 'by'} {names}" if names else word


def operator_changes(was: OperatorShape, now: OperatorShape, output_mode: str) -> Iterator[Change]:
    place = operator_words(was)
    if (
        (was.kind == "join" and was.inputs != now.inputs)
        and len(was.inputs) == len(now.inputs)
        and [_side(one) for one in was.inputs] == [_side(one, swapped=True) for one in reversed(now.inputs)]
    ):
        text = "the sides of the join are swapped: the kept rows of one side would count as rows of the other side"
        yield _change("join-sides-swapped", Effect.NEEDS_REBUILD, text, place)
        return
    if was.kind != now.kind:
        reproducible = now.kind != "deduplicate-within-watermark"
        yield _change(
            "dedup-kind-changed",
            Effect.NEEDS_REBUILD if reproducible else Effect.NOT_RESTORABLE,
            f"the {_KINDS[was.kind]} is a {_KINDS[now.kind]} now, which keeps other state",
            place,
            (_KINDS[was.kind], _KINDS[now.kind]),
            acceptable=False,
        )
    yield from _windows(was, now, place, output_mode)
    yield from _keys(was, now, place, output_mode)
    if [(one.text, one.type) for one in was.aggregates] != [(one.text, one.type) for one in now.aggregates]:
        functions = [[one.text.partition("(")[0] for one in side.aggregates] for side in (was, now)]
        # Each of these buffers one value.
        buffers = [["max" if one in ("sum", "min") else one for one in side] for side in functions]
        yield _change(
            "aggregates-changed",
            Effect.NEEDS_REBUILD,
            "; ".join(_list_words("aggregate", was.aggregates, now.aggregates)),
            place,
            (", ".join(one.text for one in was.aggregates), ", ".join(one.text for one in now.aggregates)),
            acceptable=buffers[0] == buffers[1],
        )
    yield from _join(was, now, place)
    yield from _own_schemas(was, now, place)
    if len(was.inputs) != len(now.inputs):
        yield _change("input-changed", Effect.NEEDS_REBUILD, "other rows are combined before it", place)
        return
    for before, after in zip(was.inputs, now.inputs, strict=True):
        yield from _watermarks(before, after, now, output_mode)
        yield from _input(before, after, place)


def _side(one: InputShape, *, swapped: bool = False) -> list[str]:
    texts = [one.base, *one.steps, *one.filters, *(column.text for column in one.columns)]
    return [_SOURCE.sub(lambda found: f"{found[1]}{1 - int(found[2])}", text) if swapped else text for text in texts]


def _windows(was: OperatorShape, now: OperatorShape, place: str, output_mode: str) -> Iterator[Change]:
    for before, after in zip(was.windows, now.windows, strict=False):
        if before == after:
            continue
        session = "session" in (before.kind, after.kind)
        code, acceptable = "window-changed", True
        if session and before.kind != after.kind:
            code, acceptable = "window-kind-changed", False
        elif session and before.time == after.time:
            code = "session-gap-changed"
        rebuild = output_mode == "complete"
        consequence = (
            "" if rebuild else "; windows between those already written and the new ones would be absent or doubled"
        )
        yield _change(
            code,
            Effect.NEEDS_REBUILD if rebuild else Effect.NOT_RESTORABLE,
            "; ".join(_window_words(before, after)) + consequence,
            place,
            (before.text, after.text),
            acceptable=acceptable,
        )


def _window_words(was: Window, now: Window) -> Iterator[str]:
    if (was.kind == "session") != (now.kind == "session"):
        yield f"the window was {was.text}, is {now.text}"
        return
    for word, before, after in (
        ("length", was.length_ms, now.length_ms),
        ("slide", was.slide_ms, now.slide_ms),
        ("offset", was.offset_ms, now.offset_ms),
    ):
        if before != after:
            yield f"window {word} was {duration(before)}, is {duration(after)}"
    if was.gap != now.gap:
        yield f"the gap of the sessions was {was.gap}, is {now.gap}"
    if was.time != now.time:
        yield f"the window's time was {was.time}, is {now.time}"


def _keys(was: OperatorShape, now: OperatorShape, place: str, output_mode: str) -> Iterator[Change]:
    before, after = _without_windows(was), _without_windows(now)
    if [(key.text, key.type) for key in before] == [(key.text, key.type) for key in after]:
        return
    dedup, join = was.kind.startswith("dedup"), was.kind == "join"
    code = "dedup-keys-changed" if dedup else "join-keys-changed" if join else "keys-changed"
    # A rebuild omits new groups that no batch after the last written batch touches.
    loses_groups = output_mode == "update" or (output_mode == "append" and not (was.windows and now.windows))
    lost = now.kind == "deduplicate-within-watermark" or (now.kind == "aggregate" and loses_groups)
    yield _change(
        code,
        Effect.NOT_RESTORABLE if lost else Effect.NEEDS_REBUILD,
        "; ".join(_list_words("key", before, after)),
        place,
        (", ".join(key.text for key in was.keys), ", ".join(key.text for key in now.keys)),
        acceptable=_same_types(before, after),
    )


def _join(was: OperatorShape, now: OperatorShape, place: str) -> Iterator[Change]:
    if was.join_type != now.join_type:
        text = f"the join was {was.join_type}, is {now.join_type}"
        yield _change(
            "join-type-changed", Effect.NEEDS_REBUILD, text, place, (was.join_type, now.join_type), acceptable=False
        )
    if was.conditions != now.conditions:
        words = "; ".join(_set_words("condition", was.conditions, now.conditions))
        yield _change(
            "join-condition-changed", Effect.NEEDS_REBUILD, words, place, (_and(was.conditions), _and(now.conditions))
        )
    if was.kind != "join":
        return
    for before, after in zip(was.inputs, now.inputs, strict=False):
        if [(one.text, one.type) for one in before.columns] != [(one.text, one.type) for one in after.columns]:
            yield _change(
                "join-columns-changed",
                Effect.NEEDS_REBUILD,
                f"the rows that the join keeps of its {after.side} side: "
                + "; ".join(_list_words("column", before.columns, after.columns)),
                place,
                (", ".join(one.text for one in before.columns), ", ".join(one.text for one in after.columns)),
                acceptable=_same_types(before.columns, after.columns),
            )


def _own_schemas(was: OperatorShape, now: OperatorShape, place: str) -> Iterator[Change]:
    if was.state_schema != now.state_schema:
        types = [[field.rpartition(" ")[2] for field in one.state_schema] for one in (was, now)]
        yield _change(
            "state-schema-changed",
            Effect.NEEDS_REBUILD,
            "the function's state has other fields",
            place,
            (", ".join(was.state_schema), ", ".join(now.state_schema)),
            acceptable=types[0] == types[1],
        )
    for setting in sorted(was.settings.keys() | now.settings.keys()):
        before, after = was.settings.get(setting), now.settings.get(setting)
        if before == after:
            continue
        if setting == "limit":
            text = f"the limit was {before}, is {after}; rows beyond the old one were dropped"
            yield _change("limit-changed", Effect.CHANGES_ROWS, text, place, (before, after), goal=None)
        elif setting != "outputMode":
            acceptable = setting == "timeout" and "NoTimeout" not in (before, after)
            text = f"the {'timeout' if setting == 'timeout' else 'time mode'} was {before}, is {after}"
            yield _change("timeout-changed", Effect.NEEDS_REBUILD, text, place, (before, after), acceptable=acceptable)


def _watermarks(was: InputShape, now: InputShape, operator: OperatorShape, output_mode: str) -> Iterator[Change]:
    place = operator_words(operator)
    sessions = any(window.kind == "session" for window in operator.windows)
    if output_mode == "complete" and operator.kind == "aggregate" and not sessions:
        # Spark drops no group and no late row then; those of sessions and of other operators it drops in any mode.
        return
    for before, after in zip_longest(was.watermarks, now.watermarks):
        if before is None:
            text = f"a watermark of {after.column} was added; rows that it would have dropped as late are in the state"
            yield _change("watermark-added", Effect.CHANGES_ROWS, text, place, (None, _watermark_text(after)))
        elif after is None:
            text = f"the watermark of {before.column} was removed; late rows would begin groups again that it dropped"
            yield _change("watermark-removed", Effect.NEEDS_REBUILD, text, place, (_watermark_text(before), None))
        elif before.column != after.column:
            yield _change(
                "watermark-column-changed",
                Effect.NOT_RESTORABLE,
                f"the watermark's column was {before.column}, is {after.column}; recorded ones are of the old one",
                place,
                (before.column, after.column),
            )
        elif before.delay_ms != after.delay_ms:
            values = (duration(before.delay_ms), duration(after.delay_ms))
            text, effect = f"the watermark's delay was {values[0]}, is {values[1]}", Effect.CHANGES_ROWS
            if operator.kind == "deduplicate-within-watermark":
                text = f"{text}; rows of the kept state are remembered for the old time"
            elif after.delay_ms < before.delay_ms:
                text = f"{text}; rows that it would have dropped as late are in the state"
            else:
                effect = Effect.COMPATIBLE
                text = (
                    f"{text}; the watermark stays where it is until the new delay has passed, "
                    "and windows and other state that the old delay has closed stay closed"
                )
            change = _change("watermark-delay-changed", effect, text, place, values, goal=None)
            yield replace(change, said=effect is Effect.COMPATIBLE)


def _input(was: InputShape, now: InputShape, place: str) -> Iterator[Change]:
    if was.base != now.base:
        yield _change(
            "input-changed", Effect.NEEDS_REBUILD, "its rows come from elsewhere", place, (was.base, now.base)
        )
    if was.filters != now.filters:
        words = "; ".join(_set_words("filter", was.filters, now.filters))
        yield _change(
            "filter-before-state-changed",
            Effect.CHANGES_ROWS,
            f"{words}; rows of the kept state passed the old filter",
            place,
            (_and(was.filters), _and(now.filters)),
        )
    if was.steps != now.steps:
        words = "; ".join(_set_words("step", was.steps, now.steps)) or "the order of the steps of its rows has changed"
        yield _change("input-changed", Effect.CHANGES_ROWS, words, place, (", ".join(was.steps), ", ".join(now.steps)))
    if now.side:
        return
    before = {column.name: column.text for column in was.columns}
    after = {column.name: column.text for column in now.columns}
    given = [f"column {name} was removed" for name in before if name not in after]
    given += [
        f"column {name} is {after[name]}, was {text}" for name, text in before.items() if after.get(name, text) != text
    ]
    if given:
        yield _change("input-columns-changed", Effect.CHANGES_ROWS, "; ".join(given), place)


def duration(milliseconds: int) -> str:
    """The duration as a user writes it: ``1 hour``."""
    for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000)):
        if milliseconds and milliseconds % size == 0:
            count = milliseconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{milliseconds} milliseconds" if milliseconds else "0 seconds"


def _change(
    code: str,
    effect: Effect,
    text: str,
    place: str,
    values: tuple[str | None, str | None] = (None, None),
    *,
    goal: ChangeGoal | None = "rebuild",
    acceptable: bool = True,
) -> Change:
    right = "reset" if effect is Effect.NOT_RESTORABLE else None if effect is Effect.COMPATIBLE else goal
    return Change(code, effect, text, place, *values, goal=right, acceptable=acceptable)


def _without_windows(operator: OperatorShape) -> tuple[Traced, ...]:
    found = []
    for key in operator.keys:
        text = key.text
        for number, window in enumerate(operator.windows, start=1):
            text = text.replace(window.text, f"window {number}")
        found.append(Traced(key.name, text, key.reads, key.type))
    return tuple(found)


def _list_words(noun: str, was: Sequence[Traced], now: Sequence[Traced]) -> Iterator[str]:
    before, after = Counter(one.text for one in was), Counter(one.text for one in now)
    if before == after:
        changed = [
            (one, other)
            for one, other in zip(was, now, strict=True)
            if one.type != other.type and one.text == other.text
        ]
        if changed:
            yield from (f"{noun} {one.name or one.text} was {one.type}, is {other.type}" for one, other in changed)
        else:
            yield f"the {noun}s are in a different order: {', '.join(one.text for one in now)}"
        return
    removed, added = [one for one in was if one.text not in after], [one for one in now if one.text not in before]
    for one in list(added):
        same = next((other for other in removed if other.name == one.name and one.name), None)
        if same is not None:
            yield f"{noun} {one.name} is {one.text} now, was {same.text}"
            removed.remove(same)
            added.remove(one)
    yield from (f"{noun} {_named(one)} was removed" for one in removed)
    yield from (f"{noun} {_named(one)} was added" for one in added)


def _named(one: Traced) -> str:
    return one.text if one.name in ("", one.text) else f"{one.name} ({one.text})"


def _set_words(noun: str, was: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    yield from (f"{noun} {text} was removed" for text in was if text not in now)
    yield from (f"{noun} {text} was added" for text in now if text not in was)


def _and(texts: Sequence[str]) -> str:
    return " AND ".join(texts)


def _same_types(was: Sequence[Traced], now: Sequence[Traced]) -> bool:
    return len(was) == len(now) and all(
        not one.type or not other.type or one.type == other.type for one, other in zip(was, now, strict=True)
    )


def _watermark_text(watermark: Watermark) -> str:
    return f"{watermark.column} delayed by {duration(watermark.delay_ms)}"
