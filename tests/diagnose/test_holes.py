"""Numbers that are missing from a sequence."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.checkpoint import holes

NUMBERS = st.integers(-3, 30)


@given(NUMBERS, NUMBERS, st.lists(NUMBERS))
def test_they_are_the_numbers_that_are_not_there(first: int, last: int, there: list[int]) -> None:
    found = list(holes(first, last, there))

    assert [number for hole in found for number in hole] == [
        number for number in range(first, last + 1) if number not in there
    ]
    assert all(before.stop < after.start for before, after in pairwise(found))


def test_no_number_of_a_hole_is_visited() -> None:
    assert list(holes(0, 10**30, [0, 10**17])) == [range(1, 10**17), range(10**17 + 1, 10**30 + 1)]
