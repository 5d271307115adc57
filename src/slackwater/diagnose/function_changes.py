"""Compares a Python function of two programs: code and captured values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from slackwater.core.program import Program
from slackwater.core.verdict import Change, Effect

_MOST_NAMED = 5


def changed_function(name: str, kept: Program, now: Program) -> str | None:
    """The changes, with names of variables; ``None``: nothing, or a side is not recorded."""
    was, is_now = kept.functions.get(name), now.functions.get(name)
    code_changed = was is not None and is_now is not None and was != is_now
    before, after = kept.values.get(name), now.values.get(name)
    values = _other_values(before, after) if before is not None and after is not None else []
    if code_changed:
        # Other code has other variables.
        values = [one for one in values if one in (before or {}) and one in (after or {})]
    if values:
        more = f" and {len(values) - _MOST_NAMED} more" if len(values) > _MOST_NAMED else ""
        return f"function {name} has changed: it has another value of {', '.join(values[:_MOST_NAMED])}{more}"
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


def _other_values(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    both = before.keys() & after.keys()
    removed = {name: digest for name, digest in before.items() if name not in both}
    added = {name: digest for name, digest in after.items() if name not in both}
    renamed = Counter(removed.values()) & Counter(added.values())
    others = [name for name in both if before[name] != after[name]]
    for one in (removed, added):
        left = renamed.copy()
        others += [name for name, digest in sorted(one.items()) if not _taken(digest, left)]
    return sorted(others)


def _taken(digest: str, left: Counter[str]) -> bool:
    left[digest] -= 1
    return left[digest] >= 0
