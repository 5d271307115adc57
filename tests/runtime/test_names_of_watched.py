"""Names of watched queries: a name becomes a folder of the home, so a query of another name is known by its id."""

import pytest

from slackwater.runtime.application.watch import name_of_stream

QUERY = "61a84303-80aa-4970-973a-8b729f494d48"


@pytest.mark.parametrize(
    ("given", "name"),
    [("clicks", "clicks"), (None, QUERY), ("", QUERY), ("a/b", QUERY), ("../orders", QUERY), ("my query", QUERY)],
)
def test_the_name_of_a_query_that_only_the_listener_shows(given: str | None, name: str) -> None:
    assert name_of_stream(QUERY, given) == name
