"""Reads the program that starts an adopted query: the checkpoint names neither its output nor its output mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from slackwater.core.commands import command
from slackwater.core.errors import PipelineError
from slackwater.core.records import StreamRecord
from slackwater.ledger.workspace import Workspace
from slackwater.operations.apply.replayer import QueryRuntime
from slackwater.runtime.loader import full_reference, is_application

ReadProgram = Callable[[Workspace, StreamRecord], StreamRecord]
"""The stream with what the program shows of its query. Raises PipelineError or UsageError."""


def reader_of(reference: str, runtime: QueryRuntime) -> ReadProgram:
    """Reads the program with Spark, up to the start of its queries; none is started."""
    program = full_reference(reference)
    if not is_application(program):
        raise PipelineError(
            "application-queries",
            "This is not a program that starts its own streaming queries",
            where=program,
            expected=".writeStream in the file, or in what it imports, and no Pipeline",
            found="none, or a Pipeline",
            hint=f"name the program that is started with this checkpoint: 'app.py -- ARGUMENTS'; or the directory of "
            f"its output: {command('adopt', 'LOCATION', '--sink', 'DIRECTORY')}",
        )

    def read(workspace: Workspace, stream: StreamRecord) -> StreamRecord:
        runtime.require_spark()
        with runtime.open_replayer(workspace, stream, program, lambda _: None) as replayer:
            sink = replayer.sink_written or stream.sink
            return replace(stream, sink=sink, output_mode=replayer.output_mode, pipeline_file=program)

    return read
