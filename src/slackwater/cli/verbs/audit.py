"""``slackwater audit``: crash drills on a pipeline's sinks: which rows they double or lose.

Two runs have the same rows in separate folders, an uninterrupted and a drilled run. The rows that the user's reader
shows after each batch are compared as multisets.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Group
from rich.table import Table
from rich.text import Text

from slackwater.audit.drilled_sink import check_drilled
from slackwater.audit.processes import JVM_OPTIONS, process, send_all, tree, wait_until_gone
from slackwater.audit.steps import CHOICES, ERROR, RESULTS, AuditRequest, Drill, Step, most_steps, steps_for
from slackwater.cli.common.arguments import Format
from slackwater.cli.common.console import Document, Steps, confirm, err, interrupt_on_signals, parse_conf, prepare, say
from slackwater.cli.common.pages import blocks, heading, show, table_of
from slackwater.core import errors
from slackwater.core.commands import command
from slackwater.core.errors import NotFound, PipelineError, StreamFailed, UsageError
from slackwater.core.settings import Settings
from slackwater.core.sink import sink_text
from slackwater.core.units import counted
from slackwater.runtime.loader import LoadedPipeline, load
from slackwater.runtime.session import require_spark, session_options

SCHEMA = "slackwater.audit/1"


_NOT_REACHED: Mapping[Drill, str] = {
    "before": "the function was not called",
    "line": "the function ran fewer lines than in the uninterrupted batch",
    "job": "the function ran no Spark task that reads the rows",
    "task": "the function ran no Spark task that reads the rows",
    "twice": "the function was not called",
    "after": "the function was not called",
}
VERDICTS = {"red": "not passed", "yellow": "not checked", "green": "passed"}
"""By the style that an outcome is shown in, the worst first."""
NOT_EQUAL = 8
NOT_CHECKED = 5
INTERRUPTED = 130


Run = Literal["reference", "drill"]
REFERENCE: Run = "reference"
DRILL: Run = "drill"
ONE_CORE = "local[1,4]"
"""Tasks run in sequence, and each may fail three times."""
FIXED = {
    # A task for each file, however small.
    "spark.sql.files.openCostInBytes": "134217728",
    "spark.sql.files.maxPartitionBytes": "134217728",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}
END_WAIT_S = 20.0
_SHOWN_LINES = 12


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """``streams`` empty: all with an audit reader; ``drills`` empty: all possible drills.

    ``variables`` are set for the pipeline file; ``{run}`` in values is ``reference`` or ``drill``, ``{folder}`` the
    run's folder. ``folder`` is kept; the default is temporary, and removed if all drills passed.
    """

    streams: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    drills: tuple[Drill, ...] = ()
    folder: Path | None = None
    spark: Mapping[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> tuple[Drill, ...]:
        return self.drills or CHOICES


def selected(reference: str, options: AuditOptions) -> tuple[LoadedPipeline, tuple[str, ...]]:
    """The pipeline and the audited streams, without Spark. Raises NotFound for an unknown stream, PipelineError if a
    stream has no audit reader, and as ``check_drilled``.
    """
    os.environ.update(_variables(options, REFERENCE, Path("audit")))
    loaded = load(reference)
    streams, readers = loaded.pipeline.streams, loaded.pipeline.audit_readers
    unknown = [name for name in (*options.streams, *readers) if name not in streams]
    if unknown:
        raise NotFound(
            "stream-unknown",
            f"Pipeline {loaded.pipeline.name} has no stream of this name",
            expected="one of " + ", ".join(streams),
            found=unknown[0],
        )
    wanted = options.streams or tuple(name for name in streams if name in readers)
    unread = [name for name in wanted or streams if name not in readers]
    if unread:
        raise PipelineError(
            "audit-reader-missing",
            f"Stream {unread[0]} has no audit reader: a function that reads back what its sink wrote",
            where=str(loaded.file),
            hint=f'write: @pipeline.audit_reader("{unread[0]}"), and below it: def NAME(spark): return <all rows>',
        )
    for name in wanted:
        check_drilled(streams[name].sink, streams[name].full_name, options.drills)
    return loaded, wanted


def run_drills(
    loaded: LoadedPipeline, names: Sequence[str], options: AuditOptions, settings: Settings, progress: Steps
) -> Document:
    """Audit the streams in sequence; no started process survives. Returns the document.

    Raises Refused (``audit-target``) if a target holds rows, StreamFailed if an uninterrupted run does not write its
    rows.
    """
    require_spark()
    if options.folder is None:
        folder = Path(tempfile.mkdtemp(prefix="slackwater-audit-"))
    else:
        folder = options.folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(
                "audit-folder",
                "The audit's folder must be new or empty",
                where=str(folder),
                hint="choose a different folder with --folder",
            )
    progress.works_in(folder)
    session = session_options(loaded, settings, ONE_CORE, {**options.spark, **FIXED})
    fields = {"application": session.application, "master": session.master, "connectors": session.connectors}
    given = {**fields, "settings": dict(session.settings)}
    audits = []
    for name in names:
        scratch = folder / name
        scratch.mkdir()
        request = AuditRequest(loaded.reference, name, str(scratch), "schema", given)
        audits.append(_audited(loaded, request, options, progress))
    passed = all(one["passed"] for one in audits)
    kept = options.folder is not None or not passed
    if not kept:
        shutil.rmtree(folder)
    return {
        "schema": SCHEMA,
        "passed": passed,
        "folder": str(folder) if kept else None,
        "without_reader": [name for name in loaded.pipeline.streams if name not in loaded.pipeline.audit_readers],
        "streams": audits,
    }


def _audited(loaded: LoadedPipeline, request: AuditRequest, options: AuditOptions, progress: Steps) -> Document:
    """``rows`` are the target's after the uninterrupted run."""
    definition = loaded.pipeline.streams[request.stream]
    progress.begin(f"{definition.full_name}: reading its schema")
    _process(request, options)
    progress.end("rows generated")
    batches = most_steps(options.wanted)
    progress.begin(f"{request.stream}: {batches} batches, uninterrupted")
    uninterrupted = replace(request, run=REFERENCE, steps=(Step("none"),) * batches)
    _process(uninterrupted, options)
    reference = _results(uninterrupted.folder)
    failed = next((one for one in reference.values() if one["end"] != "finished"), None)
    if failed is not None:
        raise StreamFailed(
            "audit-reference",
            f"Stream {request.stream} cannot write generated rows without any drill: {failed['reason']}",
            where=str(uninterrupted.folder),
            hint="the rows have the stream's schema and made-up values; see docs/audit.md",
        )
    progress.end(f"the target holds {Counter(reference[batches - 1]['shown']).total()} rows")
    steps = steps_of(definition.full_name, options, reference)
    request = replace(request, run=DRILL, steps=steps)
    killed, drilled = True, _results(request.folder)
    while killed:
        following = len(drilled)
        restarted = ", then restarted" if request.again else ""
        progress.begin(f"{request.stream}: {steps[following].text}{restarted}")
        killed = _process(replace(request, first=following), options)
        drilled = _results(request.folder)
        request = replace(request, again=True)
        progress.end(f"kill -9 in batch {len(drilled)}" if killed else "all batches were tried")
    drills = compared(steps, reference, drilled)
    return {
        "stream": definition.full_name,
        "sink": dict(definition.sink.identity()),
        "guarantee": definition.sink.traits.delivery.guarantee,
        "passed": all(drill["passed"] for drill in drills),
        "rows": Counter(reference[len(steps) - 1]["shown"]).total(),
        "drills": drills,
    }


def _process(request: AuditRequest, options: AuditOptions) -> bool:
    """Run a process to its end; whether a drill killed it."""
    folder = request.folder / "work"
    folder.mkdir(parents=True, exist_ok=True)
    marks = len(list(request.folder.glob("drilled-*")))
    log = request.folder / "log.txt"
    jvm = f"{JVM_OPTIONS} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()
    variables = _variables(options, DRILL if request.run == DRILL else REFERENCE, request.folder)
    if not Path(request.reference).is_file():
        # A module is found from where the command was started, and not from the folder of the run.
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
    with log.open("ab") as output:
        running = subprocess.Popen(
            [sys.executable, "-m", "slackwater.audit.child"],
            cwd=folder if request.run in (REFERENCE, DRILL) else None,
            env={**os.environ, "SPARK_SUBMIT_OPTS": jvm, **variables},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    code = _finish(running, request)
    error = request.folder / ERROR
    if error.exists():
        fields = json.loads(error.read_text())
        raise getattr(errors, fields.pop("class"))(**fields)
    if code == 0:
        return False
    if code == -signal.SIGKILL and len(list(request.folder.glob("drilled-*"))) > marks:
        return True
    lines = log.read_text(errors="replace").strip().splitlines()
    raise StreamFailed(
        "audit-process",
        f"The process of the audit ended with exit code {code}, and not by a drill",
        where=str(log),
        found="\n" + "\n".join(lines[-_SHOWN_LINES:]),
        hint=f"the log has all of its output; run the pipeline alone first: {command('run', request.reference)}",
    )


def _finish(running: subprocess.Popen[bytes], request: AuditRequest) -> int:
    """Wait for the end, also of the JVM; an interrupt leaves nothing running."""
    known = tuple(filter(None, [process(running.pid)]))
    try:
        if running.stdin is not None:
            running.stdin.write(request.as_json().encode())
            running.stdin.close()
        while True:
            try:
                return running.wait(0.2)
            except subprocess.TimeoutExpired:
                known = tree(running.pid) or known
    finally:
        if running.poll() is None:
            known = tree(running.pid) or known
            send_all(known, signal.SIGKILL)
            running.wait()
        if not wait_until_gone(known, END_WAIT_S):
            send_all(known, signal.SIGKILL)


def _results(folder: Path) -> dict[int, Document]:
    try:
        lines = (folder / RESULTS).read_text().splitlines()
    except FileNotFoundError:
        return {}
    return {result["step"]: result for result in map(json.loads, lines)}


def steps_of(stream: str, options: AuditOptions, reference: Mapping[int, Mapping[str, Any]]) -> tuple[Step, ...]:
    """The steps, from the uninterrupted run. Raises UsageError if a named drill has none. A function may do more in its
    first batch, which has no drill.
    """
    typical = reference[1]
    steps = steps_for(typical["lines"], options.wanted, by_function=typical["by_function"])
    done = {step.drill for step in steps}
    without = next((drill for drill in options.drills if drill not in done), None)
    if without is not None:
        raise UsageError(
            "audit-drill",
            f"Drill {without} is impossible: the function runs too few lines of the pipeline's own files",
            where=f"stream {stream}",
            expected="two lines or more, in files below the folder of the pipeline file",
            found=f"{len(typical['lines'])} in an uninterrupted batch",
            hint=f"leave out --drill {without}",
        )
    return tuple(replace(step, last_pass=reference[number]["passes"]) for number, step in enumerate(steps))


def compared(
    steps: Sequence[Step], reference: Mapping[int, Mapping[str, Any]], drilled: Mapping[int, Mapping[str, Any]]
) -> list[Document]:
    """The drills of the document. ``doubled`` and ``vanished`` count rows; ``other``: those that no batch has.
    ``reached`` is false if the drill could not take place; ``failed``: why the batch could not be written.
    """
    found: list[Document] = []
    missing_before, extra_before = Counter[str](), Counter[str]()
    for number, step in enumerate(steps):
        result, counts = drilled.get(number), dict.fromkeys(("doubled", "vanished", "other"), 0)
        reached, failed = result is not None, None
        if result is None:
            failed = "not run: the batch before it failed"
        elif result["end"] != "finished":
            failed = result["reason"] or result["end"]
        else:
            expected, shown = Counter[str](reference[number]["shown"]), Counter[str](result["shown"])
            missing, extra = expected - shown, shown - expected
            new = extra - extra_before
            doubled, vanished = sum(count for row, count in new.items() if row in expected), missing - missing_before
            counts = {"doubled": doubled, "vanished": vanished.total(), "other": new.total() - doubled}
            reached = step.drill == "none" or result["drilled"]
            missing_before, extra_before = missing, extra
        passed = reached and failed is None and not any(counts.values())
        found.append(
            {"passed": passed, "drill": step.drill, "text": step.text, **counts, "reached": reached, "failed": failed}
        )
    return found


def _variables(options: AuditOptions, run: Run, folder: Path) -> dict[str, str]:
    return {
        name: value.replace("{run}", run).replace("{folder}", str(folder)) for name, value in options.variables.items()
    }


def targets(sinks: Mapping[str, Mapping[str, str]]) -> str:
    lines = ["The audit writes generated rows to the targets of these sinks, in two runs:"]
    lines += [f"  {name}: {sink_text(identity)}" for name, identity in sinks.items()]
    lines.append("Relative paths are below a temporary folder. A target that holds rows is refused.")
    return "\n".join(lines)


def audit_page(document: Mapping[str, Any]) -> Group:
    notes: list[Text] = []
    if document["without_reader"]:
        notes += [Text(), Text(f"without an audit reader: {', '.join(document['without_reader'])}", style="dim")]
    if document["folder"] is not None:
        notes += [Text(), Text(f"logs and targets of relative paths are in {document['folder']}", style="dim")]
    return Group(blocks(document["streams"], _block), *notes)


def _block(stream: Mapping[str, Any]) -> tuple[Text, Table, Text]:
    drills = enumerate(stream["drills"])
    table = table_of((), ((f"batch {number}", drill["text"], Text(*_outcome(drill))) for number, drill in drills))
    style = _worst(stream)
    title = heading(stream["stream"], sink_text(stream["sink"]), "dim")
    title.append(f"  {VERDICTS[style]}", style=f"not bold {style}")
    rows, guarantee = counted(stream["rows"], "row"), stream["guarantee"]
    return title, table, Text(f"  {rows} in the target of the uninterrupted run; the sink says {guarantee}")


def _worst(stream: Mapping[str, Any]) -> str:
    styles = {_outcome(drill)[1] for drill in stream["drills"]}
    return next((style for style in VERDICTS if style in styles), "green")


def _outcome(drill: Mapping[str, Any]) -> tuple[str, str]:
    if drill["failed"] is not None:
        return f"failed: {drill['failed']}", "red"
    counts = ((drill["doubled"], "doubled"), (drill["vanished"], "vanished"), (drill["other"], "of no batch"))
    found = [f"{counted(count, 'row')} {what}" for count, what in counts if count]
    if found:
        return ", ".join(found), "red"
    if not drill["reached"]:
        return f"not reached: {_NOT_REACHED[drill['drill']]}", "yellow"
    return "as uninterrupted", "green"


def audit(
    *,
    pipeline: str,
    streams: list[str] | None,
    drills: list[str] | None,
    variables: list[str] | None,
    folder: Path | None,
    conf: list[str] | None,
    yes: bool,
    debug: bool,
    shown_as: Format,
) -> int:
    settings = prepare(None, shown_as, logging=True, debug=debug)
    unknown = next((drill for drill in drills or () if drill not in CHOICES), None)
    if unknown is not None:
        raise UsageError(
            "usage", f"Unknown drill {unknown!r} (choose from {', '.join(CHOICES)})", hint=command("audit", "--help")
        )
    options = AuditOptions(
        streams=tuple(streams or ()),
        variables=_pairs(variables),
        drills=tuple(drill for drill in CHOICES if drill in (drills or ())),
        folder=folder,
        spark=parse_conf(conf),
    )
    loaded, names = selected(pipeline, options)
    if not yes:
        sinks = {name: loaded.pipeline.streams[name].sink.identity() for name in names}
        err().print(targets(sinks))
        confirm(loaded.pipeline.name, "write generated rows there", "pipeline")
    steps = Steps(err())
    interrupt_on_signals()
    try:
        result = run_drills(loaded, names, options, settings, steps)
    except KeyboardInterrupt:
        steps.interrupted()
        err().print("The targets hold the rows that were written so far.")
        return INTERRUPTED
    finally:
        steps.close()
    show(shown_as, result, lambda: audit_page(result))
    if any(_worst(stream) == "red" for stream in result["streams"]):
        say(f"next: correct the function, then: {command('audit', pipeline)}")
        return NOT_EQUAL
    if not result["passed"]:
        err().print("A drill did not take place: what the function does then is not known.")
        return NOT_CHECKED
    return 0


def _pairs(given: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given or []:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            # The value can be an address with a password: it is not shown.
            raise UsageError(
                "set-format", "A --set must be NAME=VALUE", found=name[:40], hint=command("audit", "--help")
            )
        found[name.strip()] = value
    return found
