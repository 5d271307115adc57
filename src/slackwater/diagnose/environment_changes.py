"""Compares the process environments of two programs' functions: time zone, variables, libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from slackwater.core.program import EXECUTOR_VARIABLE, TIME_ZONE, Program
from slackwater.core.units import is_same_zone
from slackwater.core.verdict import Change, Effect

CODE = "environment-changed"
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
            yield Change(CODE, Effect.COMPATIBLE, text, place=name, before=before, after=after)


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    if not before or not after:
        return
    zone, zone_now = before.get(TIME_ZONE), after.get(TIME_ZONE)
    if zone and zone_now and not is_same_zone(zone, zone_now):
        text = f"Python functions ran in the time zone {zone}, run in {zone_now}"
        yield Change(CODE, Effect.CHANGES_ROWS, text, place=TIME_ZONE, before=zone, after=zone_now, goal="rebuild")
    for name in sorted({key.removeprefix(EXECUTOR_VARIABLE) for key in {*before, *after} - {TIME_ZONE}}):
        was, is_now = _digest(before, name), _digest(after, name)
        # Of a variable that only the code of one of them names nothing is known; changed code is compared itself.
        if was != is_now and (name in before) == (name in after):
            words = "has a new value" if was and is_now else "was not set, is set" if is_now else "was set, is not set"
            yield Change(
                CODE,
                Effect.CHANGES_ROWS,
                f"environment variable {name} of Python functions {words}",
                place=name,
                before="set" if was else "not set",
                after="set" if is_now else "not set",
                goal="rebuild",
            )


def _digest(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, environment.get(f"{EXECUTOR_VARIABLE}{name}", ""))
