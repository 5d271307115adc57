"""The base of verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from slackwater.cli.common.arguments import Parser


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb; ``summary`` is its line in the list.

    ``declare`` adds arguments, and as the default of ``verb`` a function that returns the exit code, or
    ``module:function``. ``--help`` and completion import all verbs, so a verb that imports much has its function in
    another module.
    """

    summary: str
    declare: Callable[[Parser], None]


VERBS: Mapping[str, str] = {
    "init": "slackwater.cli.verbs.init",
    "run": "slackwater.cli.verbs.run",
    "check": "slackwater.cli.verbs.check",
    "adopt": "slackwater.cli.verbs.adopt",
    "release": "slackwater.cli.verbs.release",
    "stop": "slackwater.cli.verbs.stop",
    "status": "slackwater.cli.verbs.status",
    "doctor": "slackwater.cli.verbs.doctor",
    "watch": "slackwater.cli.verbs.watch",
    "evidence": "slackwater.cli.verbs.evidence",
    "inspect": "slackwater.cli.verbs.inspect",
    "plan": "slackwater.cli.verbs.plan",
    "apply": "slackwater.cli.verbs.apply",
    "undo": "slackwater.cli.verbs.undo",
    "prune": "slackwater.cli.verbs.prune",
    "offsets": "slackwater.cli.verbs.offsets",
    "ledger": "slackwater.cli.verbs.ledger",
    "explain": "slackwater.cli.verbs.explain",
    "sinks": "slackwater.cli.verbs.sinks",
    "audit": "slackwater.cli.verbs.audit",
    "connectors": "slackwater.cli.verbs.connectors",
    "completion": "slackwater.cli.verbs.completion",
    "demo": "slackwater.cli.verbs.demo",
}
"""In the order of ``--help``. Only the used verb is imported."""


def verb_named(name: str) -> Verb:
    verb: Verb = import_module(VERBS[name]).VERB
    return verb
