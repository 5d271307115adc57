"""Compares the program of kept state with its successor: sources, state, output, environment of functions.

Sources: "Recovery Semantics after Changes in a Streaming Query" of Spark's guide, and docs/decisions/0230-verdict.md
for points that it leaves open.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest

from slackwater.core.program import EXECUTOR_VARIABLE, TIME_ZONE, InputShape, OperatorShape, Program, SourceShape
from slackwater.core.units import counted, is_same_zone
from slackwater.core.verdict import Change, Effect, Verdict
from slackwater.diagnose.operator_changes import operator_changes, operator_words
from slackwater.sources import kinds, kinds_of_format

ZONE = "spark.sql.session.timeZone"
TEXT_FORMATS = frozenset({"json", "csv", "xml"})

_OF_ANOTHER_QUERY = frozenset({"aggregate", "join", "pandas-state", "transform-with-state", "groups-with-state"})
"""Operators without which the output has other rows altogether."""


def verdict(kept: Program, now: Program) -> Verdict:
    return Verdict(changes(kept, now))


def recorded_verdict(kept: Mapping[str, object] | None, now: Mapping[str, object] | None) -> Verdict:
    """Compares recorded programs; there are no changes if either is not recorded."""
    if kept is None or now is None:
        return Verdict()
    return verdict(Program.from_json(kept), Program.from_json(now))


def other_rows(kept: Mapping[str, object] | None, now: Mapping[str, object] | None) -> tuple[str, ...]:
    """Why two recorded programs make different rows of the same input.

    Stricter than a verdict: written rows stay next to the other program's. Only values may differ, such as a time or
    id.
    """
    if kept is None or now is None:
        return ()
    before, after = Program.from_json(kept), Program.from_json(now)
    # As if all columns were kept in state: then options of a client, which change no rows, are the mildest.
    found = [
        change.text
        for number, (was, is_now) in enumerate(zip(before.sources, after.sources, strict=False))
        for change in _one_source(f"source {number}", was, is_now, set(was.schema))
        if change.effect > Effect.COMPATIBLE
    ]
    found += [
        f"setting {name} was {value}, is {after.settings[name]}"
        for name, value in sorted(before.settings.items())
        if after.settings.get(name, value) != value
    ]
    found += _filter_words(before, after)
    if [(one.base, one.steps) for one in before.rows] != [(one.base, one.steps) for one in after.rows]:
        found.append("the rows that are written are made in a different way")
    return (*found, *(change.text for change in _output_schema(before, after)))


def changes(kept: Program, now: Program) -> tuple[Change, ...]:
    added = {digest: name for name, digest in now.functions.items() if name not in kept.functions}
    removed = {name: digest for name, digest in kept.functions.items() if name not in now.functions}
    names = {name: added[digest] for name, digest in removed.items() if digest in added}
    if names:
        # Expressions contain functions' names: renamed functions get the new name.
        renamed = re.compile(r"(?<![\w'.])(" + "|".join(map(re.escape, names)) + r")(?=[(.\"])")
        text = json.dumps(kept.as_json())
        kept = Program.from_json(json.loads(renamed.sub(lambda match: names[match[1]], text)))
    found = list(_changes(kept, now))
    if not found:
        # After the last stateful operator, Spark's guide allows any change.
        uses = {name for one in now.rows for name in one.functions}
        functions = [words for name in sorted(uses) if (words := changed_function(name, kept, now))]
        if functions or [_rows(one) for one in kept.rows] != [_rows(one) for one in now.rows]:
            text = "; ".join([*functions, *_filter_words(kept, now)])
            text = text or "the columns of the output are computed in a different way"
            found.append(Change("output-changed", Effect.COMPATIBLE, text, place="output"))
    found += [*output_environment_changes(kept, now), *_output_schema(kept, now), *not_repeatable(kept, now)]
    # The type of a source's column is the reason, and after what it makes of keys and aggregates.
    return tuple(sorted(dict.fromkeys(found), key=lambda change: (-change.effect, change.code == COLUMN_TYPE)))


def _changes(kept: Program, now: Program) -> Iterator[Change]:
    joins = all(operator.kind == "join" for one in (kept, now) for operator in one.operators)
    sides = joins and now.operators and len(now.sources) == len(("left", "right"))
    swapped = (
        "the sides of the join are swapped, and the sources with them: Spark keeps their positions by their numbers"
    )
    of_sources = [
        replace(change, code="join-sides-swapped", text=swapped)
        if sides and change.code == "sources-reordered"
        else change
        for change in source_changes(kept, now)
    ]
    yield from of_sources
    yield from _output_mode(kept, now)
    if any(
        change.code in ("sources-changed", "sources-reordered", "join-sides-swapped") and not change.acceptable
        for change in of_sources
    ):
        # The expressions name sources by their numbers: compared with other sources they say nothing.
        return
    # A deduplication may have become the other kind.
    kinds_of = [[operator.kind.partition("-within")[0] for operator in one.operators] for one in (kept, now)]
    if kinds_of[0] != kinds_of[1]:
        earlier, later = (Counter(operator.kind for operator in one.operators) for one in (kept, now))
        added = [one for one in now.operators if one.kind in later - earlier]
        removed = [one for one in kept.operators if one.kind in earlier - later]
        words = [f"{operator_words(one)} was added" for one in added]
        words += [f"{operator_words(one)} was removed" for one in removed]
        another = any(one.kind in _OF_ANOTHER_QUERY for one in (*added, *removed))
        yield Change(
            "operators-changed",
            Effect.NOT_RESTORABLE if another else Effect.NEEDS_REBUILD,
            "; ".join(words) or "the stateful operators are in a different order",
            before=_listed(kept.operators),
            after=_listed(now.operators),
            goal="reset" if another else "rebuild",
            acceptable=False,
        )
        return
    for before, after in zip(kept.operators, now.operators, strict=True):
        yield from operator_changes(before, after, now.output_mode)
    yield from _functions(kept, now)
    zone, zone_now = kept.settings.get(ZONE), now.settings.get(ZONE)
    parsed = any(source.kind in TEXT_FORMATS and "timestamp" in source.schema.values() for source in now.sources)
    uses = parsed or any(operator.functions for operator in now.operators)
    if now.stateful and zone is not None and zone_now is not None and zone != zone_now and uses:
        text = f"the session's time zone was {zone}, is {zone_now}"
        yield Change(
            "time-zone-changed",
            Effect.CHANGES_ROWS,
            f"{text}; times without a zone in rows of the kept state were read in the old one",
            place=ZONE,
            before=zone,
            after=zone_now,
        )
    yield from environment_changes(kept, now)


def _listed(operators: tuple[OperatorShape, ...]) -> str:
    return ", ".join(operator_words(one) for one in operators) or "no stateful operator"


def _output_mode(kept: Program, now: Program) -> Iterator[Change]:
    if kept.output_mode == now.output_mode:
        return
    aggregates = any(operator.kind == "aggregate" for operator in (*kept.operators, *now.operators))
    effect, text = Effect.COMPATIBLE, "without an aggregation the rows are the same"
    if aggregates:
        effect = Effect.NOT_RESTORABLE
        text = {
            "append": "groups that were written while they were open are written again when they are closed",
            "update": "groups of the kept state that get no further row are never written",
            "complete": "groups that were dropped behind the watermark are absent from the whole result",
        }.get(now.output_mode, "")
        evicts = any(one.watermarks for operator in kept.operators for one in operator.inputs)
        if {kept.output_mode, now.output_mode} == {"update", "complete"} and not evicts:
            effect, text = Effect.CHANGES_ROWS, "the kept state has all groups; each batch writes others of them"
    yield Change(
        "output-mode-changed",
        effect,
        f"the output mode was {kept.output_mode}, is {now.output_mode}: {text}",
        before=kept.output_mode,
        after=now.output_mode,
        goal="reset" if effect is Effect.NOT_RESTORABLE else None,
    )


def _functions(kept: Program, now: Program) -> Iterator[Change]:
    before, after = (frozenset(name for one in program.operators for name in one.functions) for program in (kept, now))
    for name in sorted(before & after):
        words = changed_function(name, kept, now)
        if words is None:
            continue
        if name.endswith(".init"):
            yield Change(
                "state-schema-changed",
                Effect.NEEDS_REBUILD,
                f"{name}() has changed, which declares the state",
                place=f"function {name}",
                goal="rebuild",
            )
        else:
            yield Change(
                "function-changed",
                Effect.CHANGES_ROWS,
                f"{words}; rows of the kept state were computed by the old one",
                place=f"function {name}",
                goal="rebuild",
            )


def _filter_words(kept: Program, now: Program) -> list[str]:
    lines = []
    for before, after in zip_longest(kept.rows, now.rows, fillvalue=InputShape("")):
        lines += [f"filter {text} was removed" for text in before.filters if text not in after.filters]
        lines += [f"filter {text} was added" for text in after.filters if text not in before.filters]
    return lines


def _rows(one: InputShape) -> tuple[object, ...]:
    return one.base, one.steps, one.filters, [column.text for column in one.columns]


def _output_schema(kept: Program, now: Program) -> Iterator[Change]:
    if kept.output_schema == now.output_schema or not kept.output_schema:
        return
    yield Change(
        "output-schema-changed",
        Effect.COMPATIBLE,
        "the output has other columns; the sink must be able to take them",
        place="output",
        before=", ".join(kept.output_schema),
        after=", ".join(now.output_schema),
    )


COLUMN_TYPE = "source-schema-changed"


def source_changes(kept: Program, now: Program) -> Iterator[Change]:
    before, after = [_identity(one) for one in kept.sources], [_identity(one) for one in now.sources]
    if len(before) != len(after):
        yield Change(
            "sources-changed",
            Effect.NOT_RESTORABLE,
            f"the query had {counted(len(before), 'source')}, has {counted(len(after), 'source')}",
            before=_source_words(kept),
            after=_source_words(now),
            goal="reset",
            acceptable=False,
        )
        return
    if before != after and sorted(before) == sorted(after):
        yield Change(
            "sources-reordered",
            Effect.NOT_RESTORABLE,
            "the order of the sources has changed; Spark keeps their positions by number",
            before=_source_words(kept),
            after=_source_words(now),
            goal="reset",
            acceptable=False,
        )
        return
    in_state = _columns_in_state(kept) & _columns_in_state(now)
    for number, (was, is_now) in enumerate(zip(kept.sources, now.sources, strict=True)):
        own = {name for name in was.schema if not in_state.isdisjoint({name, f"source{number}.{name}"})}
        yield from _one_source(f"source {number}", was, is_now, own if now.stateful else None)


def _columns_in_state(program: Program) -> set[str]:
    kept = (
        traced
        for operator in program.operators
        for traced in (*operator.keys, *operator.aggregates, *(one for rows in operator.inputs for one in rows.columns))
    )
    return {name for traced in kept for name in traced.reads}


def _one_source(place: str, was: SourceShape, is_now: SourceShape, in_state: set[str] | None) -> Iterator[Change]:
    stateful = in_state is not None
    if _family(was) != _family(is_now) or was.location != is_now.location:
        same = kinds_of_format(was.kind) if _family(was) == _family(is_now) else ()
        mild = any(kind.continues(was.location, is_now.location) for kind in same)
        text = "what it reads from here on is of other places"
        yield Change(
            "sources-changed",
            Effect.CHANGES_ROWS if mild else Effect.NOT_RESTORABLE,
            f"{place} was {_words(was)}, is {_words(is_now)}; "
            + (text if mild else "the recorded positions belong to the old source"),
            place=place,
            before=_words(was),
            after=_words(is_now),
            goal=None if mild else "reset",
            acceptable=mild,
        )
        return
    if was.kind != is_now.kind:
        yield Change(
            "source-format-changed",
            Effect.CHANGES_ROWS,
            f"{place} was read as {was.kind}, is read as {is_now.kind}",
            place=place,
            before=was.kind,
            after=is_now.kind,
        )
    yield from _options(place, was, is_now, stateful=stateful)
    yield from _schema(place, was, is_now, in_state)


def _options(place: str, was: SourceShape, is_now: SourceShape, *, stateful: bool) -> Iterator[Change]:
    known = kinds()
    harmless = frozenset[str]().union(*(kind.harmless_options for kind in known))
    identity = frozenset[str]().union(*(kind.identity_options for kind in known))
    starts = frozenset[str]().union(*(kind.start_options for kind in known))
    for key in sorted(was.options.keys() | is_now.options.keys()):
        before, after = was.options.get(key), is_now.options.get(key)
        if before == after or key in harmless:
            continue
        text = f"option {key} of {place} was {before or 'not set'}, is {after or 'not set'}"
        if key in starts:
            # A query with a checkpoint does not use a changed start position.
            text = f"{text}; Spark continues at the position of the checkpoint, and ignores the option"
            yield Change("start-position-ignored", Effect.COMPATIBLE, text, place, before, after)
            continue
        client = any(kind.is_client_option(key, before, after) for kind in known)
        changes_rows = key in identity or (stateful and not client)
        yield Change(
            "source-options-changed",
            Effect.CHANGES_ROWS if changes_rows else Effect.COMPATIBLE,
            text,
            place=place,
            before=before,
            after=after,
            goal="rebuild" if stateful and not client else None,
        )


def _schema(place: str, was: SourceShape, is_now: SourceShape, in_state: set[str] | None) -> Iterator[Change]:
    for column in was.schema:
        before, after = was.schema[column], is_now.schema.get(column)
        if after is None or before == after:
            continue
        effect = Effect.COMPATIBLE
        if in_state is not None:
            effect = Effect.NEEDS_REBUILD if column in in_state else Effect.CHANGES_ROWS
        yield Change(
            COLUMN_TYPE,
            effect,
            f"column {column} of {place} was {before}, is {after}",
            place=place,
            before=f"{column} {before}",
            after=f"{column} {after}",
            goal=None if in_state is None else "rebuild",
            # Spark compares the types of the state with those of the query.
            acceptable=effect is not Effect.NEEDS_REBUILD,
        )


def _identity(one: SourceShape) -> tuple[str, str]:
    return _family(one), one.location


def _family(one: SourceShape) -> str:
    return next((kind.kind for kind in kinds_of_format(one.kind) if kind.reads_files), one.kind)


def _words(one: SourceShape) -> str:
    return f"{one.kind} {one.location}".strip()


def _source_words(program: Program) -> str:
    return ", ".join(_words(one) for one in program.sources)


_MOST_NAMED = 5


def changed_function(name: str, kept: Program, now: Program) -> str | None:
    """The changes, with names of variables; ``None``: nothing, or a side is not recorded."""
    was, is_now = kept.functions.get(name), now.functions.get(name)
    code_changed = was is not None and is_now is not None and was != is_now
    before, after = kept.values.get(name), now.values.get(name)
    values: list[str] = []
    if before is not None and after is not None:
        both = before.keys() & after.keys()
        values = sorted(name for name in both if before[name] != after[name])
        if not code_changed:
            # Other code has other variables.
            sides = [{name: one[name] for name in one.keys() - both} for one in (before, after)]
            renamed = Counter(sides[0].values()) & Counter(sides[1].values())
            for one in sides:
                left = renamed.copy()
                for variable, digest in sorted(one.items()):
                    left[digest] -= 1
                    if left[digest] < 0:
                        values.append(variable)
            values.sort()
    if values:
        more = f" and {len(values) - _MOST_NAMED} more" if len(values) > _MOST_NAMED else ""
        return f"function {name} has changed: it has a different value of {', '.join(values[:_MOST_NAMED])}{more}"
    return f"function {name} has changed" if code_changed else None


def not_repeatable(kept: Program | None, now: Program) -> tuple[Change, ...]:
    """Notes on dependencies that cannot be compared; ``kept`` has those reported before."""
    known = kept.outside if kept is not None else {}
    new = {name: sorted({*each} - {*known.get(name, ())}) for name, each in now.outside.items()}
    return tuple(
        Change(
            "function-not-repeatable",
            Effect.SAME,
            f"function {name} depends on {' and '.join(each)}: what it gets from there is not compared, and a batch "
            "that is run again may get other rows",
            place=f"function {name}",
            said=True,
        )
        for name, each in new.items()
        if each
    )


ENVIRONMENT_CHANGED = "environment-changed"
_OF_STATE = "computed rows of the kept state with what was before"
_OF_OUTPUT = "compute the rows of new batches with what is now"


def environment_changes(kept: Program, now: Program) -> Iterator[Change]:
    """Differences that matter for kept values; none if either side is not recorded."""
    for change in _differences(kept.environment, now.environment):
        yield replace(change, text=f"{change.text}; they {_OF_STATE}")


def output_environment_changes(kept: Program, now: Program) -> Iterator[Change]:
    """Differences for other functions, and versions. They refuse no start; `run` shows the former."""
    of_state = {change.place for change in _differences(kept.environment, now.environment)}
    for change in _differences(kept.output_environment, now.output_environment):
        if change.place not in of_state:
            text = f"{change.text}; they {_OF_OUTPUT}"
            yield replace(change, effect=Effect.COMPATIBLE, text=text, goal=None, said=True)
    for name in sorted(kept.versions.keys() & now.versions.keys()):
        if kept.versions[name] != now.versions[name]:
            before, after = kept.versions[name], now.versions[name]
            text = f"Python functions had {name} {before}, have {after}"
            yield Change(ENVIRONMENT_CHANGED, Effect.COMPATIBLE, text, place=name, before=before, after=after)


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    if not before or not after:
        return
    zone, zone_now = before.get(TIME_ZONE), after.get(TIME_ZONE)
    if zone and zone_now and not is_same_zone(zone, zone_now):
        text = f"Python functions ran in the time zone {zone}, run in {zone_now}"
        yield Change(
            ENVIRONMENT_CHANGED, Effect.CHANGES_ROWS, text, place=TIME_ZONE, before=zone, after=zone_now, goal="rebuild"
        )
    for name in sorted({key.removeprefix(EXECUTOR_VARIABLE) for key in {*before, *after} - {TIME_ZONE}}):
        was, is_now = _value_of(before, name), _value_of(after, name)
        # Of a variable that only the code of one of them names nothing is known; changed code is compared itself.
        if was != is_now and (name in before) == (name in after):
            words = "has a new value" if was and is_now else "was not set, is set" if is_now else "was set, is not set"
            yield Change(
                ENVIRONMENT_CHANGED,
                Effect.CHANGES_ROWS,
                f"environment variable {name} of Python functions {words}",
                place=name,
                before="set" if was else "not set",
                after="set" if is_now else "not set",
                goal="rebuild",
            )


def _value_of(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, environment.get(f"{EXECUTOR_VARIABLE}{name}", ""))
