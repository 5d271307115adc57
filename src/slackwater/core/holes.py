"""Numbers that are missing between others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def holes(first: int, last: int, there: Iterable[int]) -> Iterator[range]:
    """The runs of numbers from ``first`` to ``last`` that are not among those that are ``there``, in order.

    No number of a run is visited: the name of a file can claim 10**17.
    """
    expected = first
    for number in sorted({one for one in there if first <= one <= last} | {last + 1}):
        if number > expected:
            yield range(expected, number)
        expected = number + 1
