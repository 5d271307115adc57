"""One replayer at a time, kept open from one use to the next: Spark starts once to check a plan and to apply it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from slackwater.apply.replayer import Replayer
from slackwater.model.plan import Plan

Opened = Callable[[Plan], AbstractContextManager[Callable[[], Replayer]]]
"""Opens the replayer of one plan when it is first asked for."""


@contextmanager
def one_at_a_time(opened: Opened) -> Iterator[Opened]:
    """The same, but a replayer is closed when one of another plan is opened, and at the end."""
    with ExitStack() as stack:
        kept: dict[str, Callable[[], Replayer]] = {}

        @contextmanager
        def keep(plan: Plan) -> Iterator[Callable[[], Replayer]]:
            if plan.id not in kept:
                stack.close()
                kept.clear()
                kept[plan.id] = stack.enter_context(opened(plan))
            yield kept[plan.id]

        yield keep
