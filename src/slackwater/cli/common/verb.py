"""What a verb of the command line is, and where the verbs are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slackwater.cli.common.arguments import Parser
from slackwater.core.registry import Registry


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb. ``summary`` is its line in the list of verbs, and ``order`` its position there.

    ``declare`` adds its arguments, and as the default of ``verb`` what is called with them and returns the exit code: a
    function, or ``module:function``. ``--help`` and completion import all verbs, so a verb that imports much has its
    function in another module.
    """

    summary: str
    declare: Callable[[Parser], None]
    order: int = 1000


VERBS: Registry[Verb] = Registry("slackwater.cli.verbs", "VERB", "slackwater.verbs")


def listed() -> dict[str, Verb]:
    """All verbs by name, in the order of the list."""
    found = {name: verb for name in VERBS.names() if (verb := VERBS.get(name)) is not None}
    return dict(sorted(found.items(), key=lambda item: item[1].order))
