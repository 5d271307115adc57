"""Commands as they are typed in a project without Spark: ``plan``, ``status`` and ``stop`` as they are.

``apply`` has a replayer that writes what Spark would write and, like ``undo``, can be interrupted; ``run`` ends where
Spark would start: when the stream has been registered, checked, and given its output.
"""

import contextlib
import io
import json
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from slackwater.checkpoint.layout import offset_path
from slackwater.cli.common.console import prepare, report_error, report_interrupt
from slackwater.cli.main import main, make_parser
from slackwater.core.errors import SlackwaterError
from slackwater.ledger.lease_keeper import LeaseKeeper
from slackwater.ledger.workspace import open_workspace
from slackwater.operations.action import Action, Display, Inverse
from slackwater.operations.apply.apply_plan import apply_plan
from slackwater.operations.apply.undo_operation import find_operation, plan_of_operation, undo_operation
from slackwater.operations.check_home import check_home
from slackwater.operations.plan.document import parse
from slackwater.runtime.loader import load
from slackwater.runtime.run.before_start import check, claim_output, record_start, register
from slackwater.sources.common.contract import Served
from slackwater.sources.files import NO_FILES
from slackwater.storage.protocols import ReadStore
from tests.support.homes import ROWS, HomeSpec, edit_ledger
from tests.support.rebuilds import Project, StubReplayer, StubRuntime, make_project

PIPELINE = """import slackwater
pipeline = slackwater.Pipeline("clicks")
@pipeline.stream(sink=slackwater.sinks.files("parquet", "out"))
def per_page(spark): ...
"""
CODE = re.compile(r"^error (?P<code>[A-Za-z0-9-]+): ", re.MULTILINE)
ADVICE = re.compile(r"^ *(hint|next)\b.*", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"slackwater ((?:run|plan|apply|undo|status|stop) [^;\n]*)")
Verb = Callable[[dict[str, Any]], object]
APPLY = "apply plan.json --yes"


@dataclass(frozen=True)
class Typed:
    command: str
    exit_code: int
    text: str

    @property
    def code(self) -> str | None:
        match = CODE.search(self.text)
        return match["code"] if match else None

    @property
    def named(self) -> list[str]:
        """The commands that the text names as the next ones: in its hint, or behind "next"."""
        advice = ADVICE.search(self.text)
        return [command.strip() for command in COMMAND.findall(advice[0])] if advice else []

    @property
    def started(self) -> bool:
        """Whether it was a run, which was not refused."""
        return self.command.startswith("run ") and self.exit_code == 0


@dataclass
class Player(StubReplayer):
    """What Spark would do; ``counted`` rows are reported of each batch, ``strays_to`` is the batch reported."""

    counted: int = ROWS
    of_base: int = 0
    strays_to: int | None = None
    served: dict[str, Served] = field(default_factory=dict)

    def served_positions(self) -> dict[str, Served]:
        return self.served

    def run_pending(self, checkpoint: str, **options: Any) -> tuple[int, int]:
        replayed = super().run_pending(checkpoint, **options)
        return replayed if self.strays_to is None else (self.strays_to, replayed[1])

    def _rows(self, store: ReadStore, batch: int) -> int:
        is_base = NO_FILES.encode() in store.read(offset_path(batch))
        return self.of_base if is_base else self.counted


class Scene(Display):
    """A project in a folder whose name has a space."""

    def __init__(self, folder: Path, spec: HomeSpec) -> None:
        self.project: Project = make_project(folder, replace(spec, pipeline=PIPELINE))
        self.folder = folder
        self.player = Player(folder / "clicks.py")
        self.stream = folder / ".slackwater" / "streams" / "clicks" / "per_page"
        self.checkpoint = self.stream / "checkpoints" / "0001"
        self.before: dict[str, Callable[[], object]] = {}
        """What happens just before an action of this kind starts."""

    def next_of(self, verb: str, code: str) -> str:
        """The arguments of the one command that the findings with this code name next."""
        (stream,) = json.loads(self.type(f"{verb} per_page --format json").text)["streams"]
        [command] = {one["next"] for one in stream["findings"] if one["code"] == code}
        return str(command).removeprefix("slackwater ")

    def type(self, command: str) -> Typed:
        words, shown = shlex.split(command), io.StringIO()
        own: dict[str, Verb] = {"run": self._run, "apply": self._apply, "undo": self._undo}
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            code = self._reported(own[words[0]], words) if words[0] in own else main(words)
        return Typed(command, code, shown.getvalue())

    def must(self, command: str) -> Typed:
        typed = self.type(command)
        assert typed.exit_code == 0, typed.text
        return typed

    def plan(self, *arguments: str) -> str:
        self.must(shlex.join(["plan", "rebuild", "per_page", "--out", "plan.json", "--force", *arguments]))
        return APPLY

    @property
    def operation(self) -> str:
        return parse((self.folder / "plan.json").read_text(), "plan.json").id

    def interrupt(self, kind: str, command: str = APPLY) -> None:
        """Run a command and press Ctrl-C before its first action of a kind."""

        def stop() -> None:
            raise KeyboardInterrupt

        self.before[kind] = stop
        assert self.type(command).exit_code == 130
        self.before.clear()

    def sql(self, *statements: str, values: tuple[object, ...] = ()) -> None:
        edit_ledger(self.project.home, *statements, values=values)

    def _reported(self, verb: Verb, words: list[str]) -> int:
        try:
            verb(vars(make_parser(words).parse_args(words)))
        except SlackwaterError as error:
            report_error(error)
            return error.exit_code
        except KeyboardInterrupt as interrupt:
            report_interrupt(interrupt)
            return 130
        return 0

    def _apply(self, given: dict[str, Any]) -> None:
        settings, file = prepare(given["home"]), Path(given["plan_file"])
        plan = parse(file.read_text(), file)

        with open_workspace(settings, restore=True) as workspace:
            runtime = StubRuntime(self.player)
            applied = apply_plan(workspace, plan, runtime, self, discard_others=True)
        if applied:
            sys.stdout.write(f"next: slackwater run {shlex.quote(plan.pipeline_file)}\n")

    def _undo(self, given: dict[str, Any]) -> None:
        with open_workspace(prepare(given["home"]), restore=True) as workspace:
            record = find_operation(workspace, given["operation"])
            plan = plan_of_operation(workspace, record)
            undo_operation(workspace, record, plan, self)
        sys.stdout.write(f"next: slackwater status {plan.stream}\n")

    def _run(self, given: dict[str, Any]) -> None:
        loaded, settings = load(given["pipeline"]), prepare(given["home"])
        definitions = list(loaded.pipeline.streams.values())
        with open_workspace(settings, create=True) as workspace:
            check_home(workspace, self.say)
            with LeaseKeeper([one.full_name for one in definitions], workspace.home, workspace.ledger, "run", self.say):
                for definition in definitions:
                    record = register(definition, loaded.reference, workspace.home, workspace.ledger)
                    check(workspace.home, workspace.ledger, record)
                    claim_output(workspace.home, record)
                    record_start(workspace.home, workspace.ledger, record)

    def action(self, action: Action | Inverse) -> None:
        happening = self.before.pop(action.kind, None)
        if happening is not None:
            happening()
