"""The applications that have written to an output, where the output lists them."""

from __future__ import annotations

import re
from typing import NamedTuple

from slackwater.core.facts import Facts, Unknown

_QUERY_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Application(NamedTuple):
    """An application id and its newest number. ``is_query``: the id has the form of a query id."""

    id: str
    newest: int

    @property
    def is_query(self) -> bool:
        """Whether a sink may have taken it from a query: the sinks of Delta and Iceberg use the query id."""
        return _QUERY_ID.fullmatch(self.id) is not None


def only_other_application(facts: Facts) -> Application | None:
    """The one application of the output, where that is not the query of the checkpoint."""
    if isinstance(facts.sink, Unknown) or not facts.sink.transactions:
        return None
    applications = dict(facts.sink.transactions)
    if facts.checkpoint.report.query_id in applications or len(applications) > 1:
        return None
    ((application, newest),) = applications.items()
    return Application(application, newest)
