"""Whether a query differs from the one that made the state only because the session has other settings.

A rebuild does not help then: it replays each batch under the settings of its run, so that the state is the old one
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from slackwater.core.errors import SlackwaterError
from slackwater.core.program import Program
from slackwater.core.stream_verdict import OtherSetting
from slackwater.diagnose.program_changes import verdict
from slackwater.runtime.failures import SPARK_ERRORS
from slackwater.runtime.sql_settings import (
    changed_settings,
    effective_settings,
    replace_settings,
    restore_settings,
    settings_before,
)

if TYPE_CHECKING:
    from slackwater.runtime.query import BuiltStream

BuildAgain = Callable[["BuiltStream"], "BuiltStream"]
"""Calls the function of a stream again, in the session in which it was built."""


def only_settings(
    built: BuiltStream, kept: Program, recorded: Mapping[str, str] | None, build_again: BuildAgain | None
) -> tuple[OtherSetting, ...]:
    """The settings under whose old values the query may continue; none where that is not so.

    ``recorded`` are those of the run that made the state, ``None``: not recorded. The query is built under them, and
    the session has its own again afterwards. Of a query that cannot be built again the code has to be the same.
    """
    now = built.program
    if build_again is None and (now is None or kept.code is None or kept.code != now.code):
        return ()
    spark = built.frame.sparkSession
    present = effective_settings(spark)
    before = {**(present if recorded is None else recorded), **kept.settings}
    changed = changed_settings(spark, before)
    if not changed or (build_again is not None and not _fits(built, kept, before, build_again)):
        return ()
    own = built.definition.settings
    return tuple(OtherSetting(name, old, new, in_code=name in own) for name, (old, new) in changed.items())


def _fits(built: BuiltStream, kept: Program, settings: Mapping[str, str], build_again: BuildAgain) -> bool:
    spark = built.frame.sparkSession
    present = settings_before(spark, settings)
    # A newer Spark may reject a value that was recorded: then it is unknown whether the state would fit.
    unknown: tuple[type[Exception], ...] = (SlackwaterError, *SPARK_ERRORS)
    try:
        replace_settings(spark, settings)
        program = build_again(built).program
    except unknown:
        return False
    finally:
        restore_settings(spark, present)
    return program is not None and verdict(kept, program).starts
