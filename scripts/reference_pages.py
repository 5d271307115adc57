"""Pages of docs/reference: checks, their coverage, stores, changes, metrics, verbs, and the pipeline in Python."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import slackwater
from slackwater.cli.common.arguments import Option, Parser, declare_verb
from slackwater.cli.verbs.completion import Command, commands
from slackwater.cli.verbs.run.metrics import METRICS
from slackwater.core.facts import Severity
from slackwater.diagnose.catalogue import Failure, known_failures
from slackwater.diagnose.checks.code import REMEDIES_BY_GOAL
from slackwater.diagnose.checks.common.check import HEADINGS, Check
from slackwater.diagnose.doctor import change_texts, checks
from slackwater.diagnose.error_texts import covering
from slackwater.sinks.common.registry import catalogue, public
from slackwater.storage.registry import STORES, FsspecKind, StoreKind

CHECKS = """# Checks of doctor

What `slackwater doctor` looks for in addition to the [findings of the number line](../errors.md#findings).
`slackwater explain CODE` prints the same text. Severity `stop`: the stream must not be started; `warning`: it may, with
care; `info`: a note. The risk is what would happen to rows. The plan is the goal of `slackwater plan` that helps.
"""

CHANGES = """# Changes of a query

The changes of code that continues kept state, as `check`, `run` and `doctor --pipeline` report them.
`slackwater check FILE` shows the old value and the new one. [recovery.md](recovery.md) shows what Spark does after each
change.

The effect is the gravest possible one: *not-restorable*: not even a rebuild makes the output right; *needs-rebuild*:
the kept state means something else to the new code; *changes-rows*: Spark's guide allows it, but rows in the kept state
come from the old code; *compatible*: the stream starts; *same*: a note.

The remedy depends on the goal; `slackwater explain CODE` prints it.

{ways}
- **accepted**: Spark can run the query on the kept state, at least in some cases. `slackwater run FILE --accept CODE`
  starts it, and mixes rows of the old code with rows of the new.
"""

COVERAGE = """# Coverage of the catalogue of failures

The known failures of a restart, an upgrade, a move or a repair of a query. *found*: `slackwater doctor` (and `status`,
for the findings of the number line) finds it in the files. *refused*: `run`, `check` or `plan` reports it, with this
code. *not detectable*: neither files nor code show it, for this reason.

| failure | title | | by |
|---|---|---|---|
"""

STORES_PAGE = """# Stores

The stores of homes, checkpoints and outputs, by the scheme of the URI; a path is a `file:`. Any other fsspec protocol
is taken for an object store. *rename*: a file is renamed in one step. *replace*: an existing file is overwritten in one
step. *append*: bytes can be added to a file. *exclusive*: if two writers create a file, one fails. *directories*: a
directory is renamed in one step. *listing*: a listing has all earlier writes. *durable*: files survive the process.
*package*: for `pip install`.

Spark reads and writes these stores by its own connectors. For S3 a run adds the connector `s3a`, whose jars are locked
for Spark 4.1 only; with a different Spark set `spark.jars.packages` under `[spark]` in `slackwater.toml`. Keys are read
from the environment (`AWS_ACCESS_KEY_ID`) or from `[storage.s3]` ([settings](settings.md)). S3A ignores the
profiles of `~/.aws/credentials`, which Slackwater itself uses: set `spark.hadoop.fs.s3a.aws.credentials.provider`. HDFS
needs no connector. For Google and Azure see [limits](../limits.md#homes-and-stores).

| scheme | rename | replace | append | exclusive | directories | listing | durable | package |
|---|---|---|---|---|---|---|---|---|
"""
METRICS_PAGE = """# Metrics

The metrics that `slackwater run --metrics-port PORT` serves to Prometheus ([monitoring](../monitoring.md)), for each
stream of the run. All have the labels `pipeline` and `stream`; unknown values are left out, and never shown as 0.
Counters start at 0 with each run.

| metric | kind | more labels | meaning |
|---|---|---|---|
"""
VERBS_PAGE = """# Verbs

All verbs of `slackwater` with their arguments and options, as `slackwater VERB --help` prints them.
[Exit codes](../exit-codes.md) by verb; [settings](settings.md).

## Options of several verbs
"""
OPTIONS = "\n| option | meaning |\n|---|---|\n"
SHARED = 3
"""An option that so many verbs have with one meaning is explained once."""
PIPELINE_PAGE = """# The pipeline in Python

The Python names for a pipeline file, after `import slackwater as sw`. Invalid use raises a `sw.SlackwaterError`: like
PySpark's errors it has `getCondition()`, its [code](../errors.md), and `getMessageParameters()`. See also [Run, watch
and stop](../guides/run.md) and the guarantees of [sinks](../sinks.md).
"""
BATCH = ("stream", "stream_id", "epoch", "is_rerun", "already_written", "transaction", "delta_options")
"""What the function of ``sinks.foreach_batch`` uses of its second argument."""
WORDS = {"run": "refused", "not-detectable": "not detectable"}
WIDTH = 100
"""A call that is longer has a line for each argument."""
SEVERITIES = {Severity.STOP: "stop", Severity.WARNING: "warning", Severity.INFO: "info"}


def checks_page() -> str:
    """All checks with their texts."""
    return CHECKS + "".join(
        _text(one, f"{SEVERITIES[one.severity]}; {one.risk}, {one.certainty}", HEADINGS) for one in checks()
    )


def changes_page() -> str:
    """All changes with their texts; the sections that depend only on the goal come once."""
    ways = "\n".join(
        f"- **{goal or '-'}**: {way['remedy']} Safety: {way['safe']}" for goal, way in REMEDIES_BY_GOAL.items()
    )
    return CHANGES.format(ways=ways) + "".join(
        _text(one, one.effect.word + (", accepted" if one.acceptable else ""), ("Condition", "Effect"))
        for one in change_texts()
    )


def _text(one: Check[Any], kind: str, headings: Iterable[str]) -> str:
    lines = "\n".join(
        f"- **{heading.removeprefix('How to ').capitalize()}**: {one.sections[heading]}" for heading in headings
    )
    plan = f"; plan: {one.goal}" if one.goal else ""
    return f"\n## {one.code}\n\n{one.meaning} *{kind.capitalize()}{plan}.*\n\n{lines}\n"


def coverage_page() -> str:
    """All failures of the catalogue."""
    finders = covering()
    return COVERAGE + "\n".join(_met(code, one, finders.get(code, ())) for code, one in known_failures().items()) + "\n"


def stores_page() -> str:
    """All kinds of stores, and what they can do."""
    return STORES_PAGE + "\n".join(_store(kind) for kind in STORES.all()) + "\n"


def metrics_page() -> str:
    """All metrics of a run."""
    rows = (
        _row(f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels) or "-", one.help)
        for one in METRICS.values()
    )
    return METRICS_PAGE + "\n".join(rows) + "\n"


def verbs_page() -> str:
    """All verbs with their options, in the order of their names."""
    typed = sorted((one for one in commands() if one.words), key=lambda one: one.words)
    uses = Counter(row for one in typed for row in _options(one))
    shared = {row for row, count in uses.items() if count >= SHARED}
    return VERBS_PAGE + OPTIONS + "".join(sorted(shared)) + "".join(_verb(one, shared) for one in typed)


def _verb(one: Command, shared: Collection[str]) -> str:
    usage, positional = _positional(one.words)
    rows = _options(one)
    own = "".join(row for row in rows if row not in shared)
    also = ", ".join(name for row, name in rows.items() if row in shared)
    summary = one.summary[:1].upper() + one.summary[1:].rstrip(".")
    return (
        f"\n## {' '.join(one.words)}\n\n{summary}: `{usage}`\n"
        + (OPTIONS + positional + own if positional or own else "")
        + (f"\nAlso: {also}\n" if also else "")
    )


def _positional(words: tuple[str, ...]) -> tuple[str, str]:
    """The call of a verb without its options, and the rows of its arguments."""
    parser = Parser(f"slackwater {words[0]}")
    declare_verb(words[0], parser)
    for word in words[1:]:
        parser = parser.verbs()[word]
    usage = re.sub(r"\[-(?:[^][]|\[[^]]*\])*\]", "", parser.format_usage().partition(":")[2])
    section = re.search(r"^positional arguments:\n((?:  .*\n)+)", parser.format_help(), re.MULTILINE)
    found = re.findall(r"^  (\S+)\s+(.*(?:\n {8,}.*)*)", section[1] if section else "", re.MULTILINE)
    return " ".join(usage.split()), "".join(_row(f"`{name}`", text) + "\n" for name, text in found)


def _options(one: Command) -> dict[str, str]:
    """The rows of a verb's options, with their names."""
    return {
        _option(option) + "\n": ", ".join(f"`{name}`" for name in option.names)
        for option in one.options
        if "--help" not in option.names
    }


def _option(option: Option) -> str:
    values = "|".join(option.values) or "..." * option.takes_value
    return _row(f"`{', '.join(option.names)} {values}".strip() + "`", option.summary)


class Annotation(str):
    """An annotation, shown as it is in the source: ``inspect`` would put it in quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def pipeline_page() -> str:
    """The public Python names, with their signatures and docstrings."""
    pipeline, context, triggers = slackwater.Pipeline, slackwater.StreamContext, slackwater.triggers
    batch: object = public("Batch")
    sinks = dict.fromkeys(entry.name for entry in catalogue())
    sections: dict[str, list[tuple[str, object]]] = {
        "Pipelines and streams": [
            ("sw.Pipeline", pipeline),
            ("@pipeline.stream", pipeline.stream),
            ("@pipeline.audit_reader", pipeline.audit_reader),
            ("context.output", context.output),
        ],
        "Triggers": [(f"sw.triggers.{name}", getattr(triggers, name)) for name in triggers.__all__],
        "Sinks": [(f"sw.sinks.{name}", public(name)) for name in sinks],
        "The batch of foreach_batch": [(f"batch.{name}", inspect.getattr_static(batch, name)) for name in BATCH],
        "Queries of an application": [("sw.watch", slackwater.watch)],
    }
    return PIPELINE_PAGE + "".join(
        f"\n## {heading}\n" + "".join(_name(name, value) for name, value in names)
        for heading, names in sections.items()
    )


def _name(name: str, value: object) -> str:
    """One public name: as it is written, and its docstring as Markdown."""
    text = (inspect.getdoc(value) or "").replace("``", "`")
    return f"\n### {name}\n\n```python\n{_call(name, value)}\n```\n\n{text}\n"


def _call(name: str, value: object) -> str:
    if not callable(value):
        return name
    given = inspect.signature(value).parameters.values()
    parameters = [one.replace(annotation=Annotation(one.annotation)) for one in given if one.name != "self"]
    arguments = list(map(str, parameters))
    keywords = next((i for i, one in enumerate(parameters) if one.kind is inspect.Parameter.KEYWORD_ONLY), None)
    if keywords is not None:
        arguments.insert(keywords, "*")
    line = f"{name}({', '.join(arguments)})"
    return line if len(line) <= WIDTH else f"{name}(\n" + "".join(f"    {one},\n" for one in arguments) + ")"


def _store(kind: StoreKind) -> str:
    can = kind.traits
    answers = (
        can.atomic_rename,
        can.atomic_replace,
        can.append,
        can.exclusive_create,
        can.moves_directories,
        can.lists_at_once,
        can.durable,
    )
    schemes = ", ".join(f"`{scheme}:`" for scheme in kind.schemes)
    package = kind.package if isinstance(kind, FsspecKind) else None
    return _row(schemes, *("yes" if answer else "no" for answer in answers), package or "-")


def _met(code: str, failure: Failure, finders: Iterable[str]) -> str:
    names = ", ".join(f"`{name}`" for name in finders)
    if names:
        return _row(code, failure.title, "found", "; ".join(filter(None, (names, failure.text))))
    return _row(code, failure.title, WORDS[failure.how or ""], failure.text.removeprefix("reported as "))


def _row(*cells: str) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


PAGES: Mapping[str, Callable[[], str]] = {
    "checks": checks_page,
    "coverage": coverage_page,
    "stores": stores_page,
    "changes": changes_page,
    "metrics": metrics_page,
    "verbs": verbs_page,
    "pipeline": pipeline_page,
}
