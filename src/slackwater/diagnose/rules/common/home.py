"""The form of the rules about a home that is not in the folder that is recorded in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from slackwater.core.commands import command
from slackwater.core.finding import Finding, Severity
from slackwater.core.records import StreamRecord
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.rules.common.rule import REFUSED, Rule, When


@dataclass(frozen=True, slots=True)
class HomeRule(Rule):
    """A rule about the home itself. ``text`` has ``{was}`` for the recorded folder, ``consent`` is an option."""

    text: str = ""
    consent: str = ""

    def misplaced(self, was: str | None, stream: StreamRecord | None = None) -> Finding:
        """The finding about a home whose recorded folder is ``was``: for a ``stream`` with a command that says so.

        Without a stream it answers a command, which can be repeated with the option.
        """
        was = was or "another place"
        advice = f"repeat the command with {self.consent}, if that is so"
        if stream is not None:
            name = stream.full_name
            moved, copied = command("plan", "resume", name, "--moved"), command("plan", "resume", name, "--copied")
            advice = f"if that is so: {moved if self.consent == '--moved' else copied}"
        return self.finding(self.text.format(was=was), advice=advice, expected=f"a home at {was}")


def home_rule(place: Literal["copied", "moved"], text: str, *, order: int, doc: str | None) -> HomeRule:
    """The rule that stops every start in a home that was copied or moved, until the user declares it."""

    def find(snapshot: Snapshot) -> Iterator[Finding]:
        if snapshot.home == place:
            yield rule.misplaced(snapshot.home_was, snapshot.stream)

    rule = HomeRule(
        f"home-{place}",
        Severity.STOP,
        order=order,
        find=find,
        doc=doc,
        risk="wrong",
        exit_code=REFUSED,
        when=When.ALWAYS,
        about="identity",
        covers=("MOVE-01",),
        text=text,
        consent=f"--{place}",
    )
    return rule
