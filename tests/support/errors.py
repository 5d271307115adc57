"""An error is named by its class and its code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from slackwater.core.errors import SlackwaterError

Error = TypeVar("Error", bound=SlackwaterError)


@contextmanager
def raises_code(
    kind: type[Error], code: str, match: str | None = None, *, says: str = "", **fields: object
) -> Iterator[pytest.ExceptionInfo[Error]]:
    """The block ends with an error of this class and code, with these fields; its hint ``says`` this."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    assert caught.value.code == code, str(caught.value)
    assert says in (caught.value.hint or "")
    assert {name: getattr(caught.value, name) for name in fields} == fields
