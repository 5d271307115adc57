"""``partition_by`` with a sink that has no partitions of its own."""

from __future__ import annotations

from slackwater.errors import PipelineError
from slackwater.model.sink import WriteContext


def refuse_partitions(kind: str, context: WriteContext, hint: str = "leave partition_by out") -> None:
    """Raises PipelineError where the stream has a ``partition_by``: Spark would refuse or ignore it."""
    if context.partition_by:
        raise PipelineError(
            "partition-by-unused",
            f"The {kind} sink of stream {context.stream} cannot be partitioned",
            found=f"partition_by={', '.join(context.partition_by)}",
            hint=hint,
        )
