from __future__ import annotations

from slackwater.core.errors import Refused
from slackwater.operations.apply.operation import Operation
from slackwater.sinks.common.contract import Swappable


def swappable(operation: Operation) -> Swappable:
    """Raises Refused if the output cannot be staged."""
    if not isinstance(operation.output, Swappable):
        raise Refused(
            "swap-unsupported",
            "This output cannot be staged and swapped",
            where=operation.output.location,
            hint="plan again with another --output",
        )
    return operation.output
