"""Tracebacks of the user's code, for ``--debug``, without frames of Slackwater and libraries."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

import slackwater

NOT_THE_USERS = (
    f"{Path(slackwater.__file__).parent}/",
    f"{sysconfig.get_path('stdlib')}/",
    "/site-packages/",
    "/pyspark/",
    "/py4j/",
    # Such as ``<frozen importlib._bootstrap>``.
    "<",
)


def user_traceback(error: BaseException) -> str:
    """The traceback of the innermost exception that passed through the user's code, else empty.

    A function in a worker of Spark has its traceback in a note of the error.
    """
    notes: list[str] = getattr(error, "__notes__", [])
    if notes:
        return "".join(f"{note}\n" for note in notes)
    passed = [cause for cause in _chain(error) if _frames(cause) or isinstance(cause, SyntaxError)]
    if not passed:
        return ""
    innermost = passed[-1]
    frames = traceback.StackSummary.from_list(_frames(innermost)).format()
    return "".join(["Traceback (most recent call last):\n", *frames, *traceback.format_exception_only(innermost)])


def _chain(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if not any(part in frame.filename for part in NOT_THE_USERS)]
