"""Turns a finding or changed program into an error with remedies."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from slackwater.core.commands import command
from slackwater.core.errors import DataError, Refused, SlackwaterError
from slackwater.core.facts import Finding
from slackwater.core.sink import OutputTreatment, Traits
from slackwater.core.verdict import Change, Effect, OtherSetting, StreamVerdict, Verdict

DAMAGED = 3


def refusal(finding: Finding, stream: str, at_stake: str | None = None) -> SlackwaterError:
    """DataError (exit 3) for damage, else Refused (exit 5); each line of the hint is a step."""
    lost = f"; at stake: {at_stake}" if at_stake else ""
    hint = "\n".join(line for line in (finding.next, finding.advice) if line) or None
    kind = DataError if finding.exit_code == DAMAGED else Refused
    return kind(
        finding.code,
        f"Stream {stream}: {finding.text}{lost}",
        where=finding.where,
        expected=finding.expected,
        found=finding.found,
        hint=hint,
    )


class Ways(NamedTuple):
    """The parts of the commands. ``session`` are options of Spark (``session_words``): a start without them would
    differ.
    """

    stream: str
    reference: str
    output: OutputTreatment = "swap"
    session: tuple[str, ...] = ()

    def lines(self, verdict: Verdict, settings: Sequence[OtherSetting] = ()) -> list[str]:
        """Remedies with commands, the safest first; empty if the stream starts. ``settings`` as in ``StreamVerdict``: a
        rebuild would recompute the state under the old settings.
        """
        if verdict.starts:
            return []
        code, lines = ("--pipeline", self.reference, *self.session), list[str]()
        if settings:
            old = ", ".join(
                (f"{one.name}={one.before}" if one.before is not None else f"no {one.name}")
                + (" in the pipeline file" if one.in_code else "")
                for one in settings
            )
            before = {one.name: one.before for one in settings if not one.in_code}
            again = command("run", self.reference, *self.session_with(before))
            lines = [f"start it with the settings that made its state, {old}: {again}"]
            if all(one.now is not None or one.in_code for one in settings):
                present = {one.name: one.now for one in settings if not one.in_code}
                reset = command(
                    "plan", "reset", self.stream, "--from", "earliest", "--output", self.output, "--pipeline",
                    self.reference, *self.session_with(present),
                )  # fmt: skip
                again_now = "or process everything again with the present settings, which apply needs too"
                lines.append(f"{again_now}: {reset}")
        elif verdict.goal == "rebuild":
            lines = [f"recompute the state with this code: {command('plan', 'rebuild', self.stream, *code)}"]
        elif verdict.goal == "reset":
            again = command("plan", "reset", self.stream, "--from", "earliest", "--output", self.output, *code)
            lines = [f"process everything again with this code: {again}", f"or {NO_GOAL}"]
        if not [change for change in verdict.changes if change.effect > Effect.COMPATIBLE and not change.acceptable]:
            lines.append(f"{'or ' if lines else ''}keep the state as it is: {self.accepting(verdict)}")
        return lines

    def accepting(self, verdict: Verdict) -> str:
        codes = dict.fromkeys(change.code for change in verdict.changes if change.effect > Effect.COMPATIBLE)
        accepted = (word for code in codes for word in ("--accept", code))
        return command("run", self.reference, *accepted, *self.session)

    def session_with(self, settings: Mapping[str, str | None]) -> list[str]:
        given = zip(self.session[::2], self.session[1::2], strict=True)
        kept = [word for pair in given if pair[1].partition("=")[0] not in settings for word in pair]
        other = (f"{name}={value}" for name, value in settings.items() if value is not None)
        return [*kept, *(word for one in other for word in ("--conf", one))]


def ways_with(stream: str, reference: str, traits: Traits, *, is_watched: bool, session: tuple[str, ...] = ()) -> Ways:
    """The ways for a sink with these traits. A run of Slackwater writes a swap's output, so a watched query cannot use
    a swap.
    """
    swaps = traits.swaps and not is_watched
    return Ways(stream, reference, "swap" if swaps else "clear" if traits.cuts else "keep", session)


NO_GOAL = "restore the old code; or give the changed stream a new name and a new output"
"""The remedy if no goal corrects the output."""


def program_refusal(ways: Ways, judged: StreamVerdict, refused: Sequence[Change]) -> Refused:
    return Refused(
        "program-changed",
        f"Stream {ways.stream} would continue with state made by different code: "
        + "; ".join(f"{change.text} ({change.code}, {change.effect.word})" for change in refused),
        hint="\n".join(ways.lines(judged.verdict, judged.settings)) or NO_GOAL,
    )
