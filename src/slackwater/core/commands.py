"""Builds all commands in messages, so that they can be typed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from slackwater.core.escaping import quoted
from slackwater.core.masking import mask_setting
from slackwater.core.records import StreamRecord, leader_id

if TYPE_CHECKING:
    from slackwater.core.snapshot import Snapshot


APPLICATION = "APPLICATION"
"""In a command, the user's program that starts a query."""


def command(verb: str, *words: str) -> str:
    """A ``slackwater`` command with quoted words; the user replaces words in capitals."""
    return " ".join(("slackwater", verb, *(quoted(word) for word in words)))


def mention(*words: str) -> str:
    """A verb in a sentence; typed, it needs arguments."""
    return " ".join(("slackwater", *words))


def run_command(stream: StreamRecord) -> str | None:
    """``None`` if the user's own program runs the query."""
    if stream.is_watched and not stream.pipeline_file:
        return None
    return command("run", stream.pipeline_file or "FILE", *stream.session)


def check_command(stream: StreamRecord) -> str | None:
    """``None`` if the user's program has the code."""
    if stream.is_watched and not stream.pipeline_file:
        return None
    return command("check", stream.pipeline_file or "FILE", *stream.session)


def undo_command(operation: str) -> str:
    """Undoes the whole operation, or finishes an interrupted undo."""
    return command("undo", leader_id(operation), "--yes")


def apply_command(plan_file: str | None, session: Sequence[str] = ()) -> str:
    """Applies or continues a plan; ``session`` as of ``session_words``."""
    return command("apply", plan_file or "PLAN", "--yes", *session)


def session_words(master: str | None, settings: Mapping[str, str]) -> tuple[str, ...]:
    """Options that start Spark like the present command, without the values of secrets."""
    words = ["--master", master] if master is not None else []
    for name, value in settings.items():
        words += ["--conf", f"{name}={value if mask_setting(name, value) == value else 'VALUE'}"]
    return tuple(words)


def code_words(snapshot: Snapshot) -> tuple[str, ...]:
    """The option with a watched query's code, or a word to be replaced."""
    return ("--pipeline", snapshot.code_file or APPLICATION) if snapshot.stream.is_watched else ()


def with_pipeline(line: str, file: str) -> str:
    return f"{line} --pipeline {quoted(file)}"


def application_words(name: str, code: str) -> str:
    """Explains the word ``APPLICATION``."""
    return (
        f"{APPLICATION} is the program that starts the query, with its arguments: 'app.py -- ARGUMENTS'; for a "
        f"notebook: {code}; put the query into {name}.py, and name that"
    )


def output_command(stream: StreamRecord, location: str, program: str = "") -> str:
    """Records a query's output: by its program, which is run up to the start of its queries, or by path."""
    by_program = command("adopt", location, "--name", stream.name, "--pipeline", program or APPLICATION)
    by_path = command("adopt", location, "--name", stream.name, "--sink", "DIRECTORY")
    named = "" if program else f" ({APPLICATION} is the program that starts it, as in 'app.py -- ARGUMENTS')"
    return f"{by_program}{named}; or, if it writes to a directory: {by_path}"


def copy_again_command(original: str, copy: str) -> str:
    there = quoted(copy)
    return f"mv {there} {quoted(copy + '.linked')} && cp -rL --preserve=mode,timestamps {quoted(original)} {there}"


def write_code_command(stream: StreamRecord) -> str:
    name, mode = json.dumps(stream.name), json.dumps(stream.output_mode)
    missing = json.dumps(f"return the DataFrame of query {stream.name} here")
    lines = (
        "import slackwater as sw",
        "",
        'pipeline = sw.Pipeline("code")',
        "",
        "",
        f"@pipeline.stream(sink=sw.sinks.noop(), name={name}, output_mode={mode})",
        "def query(spark):",
        f"    raise NotImplementedError({missing})",
    )
    file = quoted(f"{stream.name}.py")
    return f"test -e {file} || printf '%s\\n' {' '.join(map(quoted, lines))} > {file}"


def rebuild_command(snapshot: Snapshot, *options: str) -> str:
    stream = snapshot.stream
    return command("plan", "rebuild", stream.full_name, *code_words(snapshot), *options, *stream.session)


def reset_command(snapshot: Snapshot, *options: str, start: str = "earliest") -> str:
    stream, code = snapshot.stream, code_words(snapshot)
    return command("plan", "reset", stream.full_name, "--from", start, *code, *options, *stream.session)


def put_aside(path: str) -> str:
    """Moves a damaged file away: a command, or words if it is not on a local disk."""
    return f"copy and delete {path}" if "://" in path else f"mv -T {quoted(path)} {quoted(f'{path}.damaged')}"
