"""Changes of a query's code: effects on kept state, and corrections.

The modules ``*_changes`` find them, by comparing two programs or a program and a checkpoint; ``doctor`` shows them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.core.commands import mention
from slackwater.core.facts import Severity
from slackwater.core.program import OperatorKind
from slackwater.core.verdict import ChangeGoal, Effect, StreamVerdict
from slackwater.diagnose.checks.common.check import HEADINGS, Check

_GUIDE = 'Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"'

_COMPUTE = mention("plan", "rebuild", "STREAM", "--pipeline", "FILE")
_PROCESS = mention("plan", "reset", "STREAM", "--from", "earliest", "--pipeline", "FILE")
REMEDIES_BY_GOAL: Mapping[ChangeGoal | None, Mapping[str, str]] = {
    "rebuild": {
        "remedy": f"`{_COMPUTE}` computes the state again with the new code; or restore the old code. Where only a "
        "setting of the session differs, start with the old one: batches are replayed under the settings of their "
        "runs.",
        "safe": "yes; the plan shows which batches are read again, and the old checkpoint is kept until it is pruned.",
    },
    "reset": {
        "remedy": f"`{_PROCESS}` processes everything again; or restore the old code, or give the changed stream a "
        "new name and a new output.",
        "safe": "the plan shows what happens to the output, and which rows the sources no longer have. A rebuild would "
        "not make the output right.",
    },
    None: {
        "remedy": "nothing, where rows of the old code may stay in the state and in the output.",
        "safe": "yes; nothing is changed.",
    },
}
AGGREGATE: frozenset[OperatorKind] = frozenset({"aggregate"})
JOIN: frozenset[OperatorKind] = frozenset({"join"})
FUNCTION: frozenset[OperatorKind] = frozenset({"pandas-state", "transform-with-state", "groups-with-state"})


@dataclass(frozen=True)
class ChangeOfCode(Check[StreamVerdict]):
    """``effect`` is the gravest possible one, ``goal`` then corrects the output.

    ``acceptable``: Spark can run on the kept state, at least sometimes. ``in_files``: a checkpoint shows it without a
    recorded program. ``stateless``: it matters without state, too. ``only_with``: kinds of operators that can have it,
    empty for all.
    """

    effect: Effect = Effect.NEEDS_REBUILD
    acceptable: bool = True
    in_files: bool = False
    stateless: bool = False
    only_with: frozenset[OperatorKind] = frozenset()


def _change(
    code: str,
    meaning: str,
    finds: str,
    matters: str,
    effect: Effect = Effect.NEEDS_REBUILD,
    *,
    goal: ChangeGoal | None = "rebuild",
    acceptable: bool = True,
    in_files: bool = False,
    stateless: bool = False,
    only_with: frozenset[OperatorKind] = frozenset(),
    also: tuple[str, ...] = (),
) -> ChangeOfCode:
    keeps = effect <= Effect.COMPATIBLE
    remedy, safe = REMEDIES_BY_GOAL[goal]["remedy"], REMEDIES_BY_GOAL[goal]["safe"]
    if keeps:
        remedy = "nothing; the stream starts."
    elif acceptable:
        remedy += f" `{mention('run', 'FILE', '--accept', code)}` starts with the state as it is."
        safe += " An accepted change mixes rows of the old code with rows of the new."
    confirm = f"`{mention('check', 'FILE')}` shows the old value and the new one."
    sections = zip(HEADINGS, (finds, matters, confirm, remedy, safe, _GUIDE), strict=True)
    return ChangeOfCode(
        code,
        # As ``doctor`` shows the gravest case.
        Severity.INFO if keeps else Severity.WARNING if effect is Effect.CHANGES_ROWS else Severity.STOP,
        # What Spark does if it is started all the same: wrong rows, or an error.
        risk="none" if keeps else "wrong" if acceptable else "stuck",
        goal=goal,
        also=also,
        page=f"{meaning}\n\n" + "\n".join(f"{heading}: {text}" for heading, text in sections),
        effect=effect,
        acceptable=acceptable,
        in_files=in_files,
        stateless=stateless,
        only_with=only_with,
    )


CHANGES = (
    _change(
        "sources-changed",
        "The query reads different sources.",
        "the number of sources differs, or a source has a different kind, path, topic or table.",
        "Spark stores positions by source number only. It refuses a different number of sources; a different source"
        " gets the old source's position, and reads rows again or skips them. Topics may be added or removed.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        in_files=True,
    ),
    _change(
        "sources-reordered",
        "The order of the sources has changed.",
        "the query has the same sources in a different order, such as in a reversed union.",
        "Spark stores positions by source number and does not compare the sources: each continues at a different "
        "source's position.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        acceptable=False,
        in_files=True,
    ),
    _change(
        "source-format-changed",
        "The format of a file source has changed.",
        "a file source reads the same path with a different format, such as JSON instead of CSV.",
        "planned files are read in the new format; rows of the state came from the old format.",
        Effect.CHANGES_ROWS,
        goal=None,
        stateless=True,
    ),
    _change(
        "source-options-changed",
        "An option of a source has changed.",
        "an option that decides which rows a source reads, or how it parses them, has a different value. Rate "
        "limits and client options are not compared.",
        "rows of the kept state were read with the old value; a query without state continues with the new value. "
        "fileNameOnly decides which files count as read: with it, of two files with the same name only the first is"
        " read; without it, moved files are read again.",
        Effect.CHANGES_ROWS,
        stateless=True,
    ),
    _change(
        "start-position-ignored",
        "The start position of a source has changed, without effect.",
        "an option for the start of a new query, such as startingOffsets or startingVersion, has a different value.",
        "Spark silently ignores it if the checkpoint has a position. To read older rows again, or to skip rows, set"
        " the position with a reset.",
        Effect.COMPATIBLE,
        goal=None,
        stateless=True,
        also=("KAFKA-07",),
    ),
    _change(
        "source-schema-changed",
        "The type of a source column has changed.",
        "the schema of a source has a different type for a column that both versions of the query have.",
        "Spark refuses different types of keys and values in the state. A column outside the state only changes "
        "later rows.",
    ),
    _change(
        "operators-changed",
        "A stateful operator was added, removed, replaced or moved.",
        "the query has different stateful operators, or a different order of them.",
        "Spark stores state by operator number. Spark 4 refuses a different name for a number; Spark 3.5 reads the "
        "state of one operator as the state of another, and can silently drop all rows.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        acceptable=False,
        in_files=True,
    ),
    _change(
        "keys-changed",
        "An aggregation or a stateful function groups by different keys.",
        "the grouping keys differ in number, expression, type or order.",
        "Spark refuses state with different types. With the same types, groups of old keys are never found again, "
        "and new groups start empty. A rebuild has only the new groups that it reads again.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        in_files=True,
    ),
    _change(
        "aggregates-changed",
        "An aggregation computes different aggregates.",
        "the aggregate functions differ in number, function, argument, type or order.",
        "the state has the old intermediate values. If their types agree, Spark continues with them: a count can "
        "silently become a sum.",
        only_with=AGGREGATE,
    ),
    _change(
        "dedup-keys-changed",
        "A deduplication compares different columns.",
        "the columns of dropDuplicates differ in number, expression, type or order.",
        "the state has values of the old columns. Spark refuses different types; with the same types it drops rows "
        "that are no duplicates, or writes duplicates.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        in_files=True,
    ),
    _change(
        "dedup-kind-changed",
        "The kind of a deduplication has changed.",
        "dropDuplicates became dropDuplicatesWithinWatermark, or the reverse.",
        "they keep different state, and Spark refuses it. State within the watermark depends on the row order and "
        "cannot be recomputed.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        acceptable=False,
        only_with=frozenset({"deduplicate", "deduplicate-within-watermark"}),
    ),
    _change(
        "limit-changed",
        "The number of a limit has changed.",
        "the number of a limit differs.",
        "the state has the number of rows that passed. Rows beyond the old limit were dropped and do not come back.",
        Effect.CHANGES_ROWS,
        goal=None,
        only_with=frozenset({"limit"}),
    ),
    _change(
        "state-schema-changed",
        "The declared state of a stateful function has changed.",
        "the schema of the state, or the init() of a processor, differs.",
        "Spark refuses different types. With the same types it reads the fields by position.",
        only_with=FUNCTION,
    ),
    _change(
        "function-changed",
        "A function that state depends on has changed.",
        "the code of a Python function of a stateful operator or a data source class, or code that it calls, "
        "differs; or a value that it uses: a variable, a default, an argument of a partial, an attribute, a "
        "broadcast variable, or a project file that the code names by a literal path. Only digests of values are "
        "recorded, and nothing of secrets.",
        "rows of the kept state were computed by the old function.",
        Effect.CHANGES_ROWS,
    ),
    _change(
        "function-not-repeatable",
        "A function depends on something that cannot be compared.",
        "its code, or code that it calls, uses chance, the clock, the network or files. Project files that the code"
        " names by a literal path are compared instead. This is reported once per function.",
        "the values are not recorded: a batch that runs again, in a restart or a rebuild, may get different rows.",
        Effect.SAME,
        goal=None,
        stateless=True,
    ),
    _change(
        "environment-changed",
        "The environment of a Python function has changed.",
        "the time zone of the process, an environment variable that the function names, or a setting "
        "`spark.executorEnv.*` differs. Values are recorded with each run, except secrets. These are notes only: "
        "a different version of Python or of a library that the function uses, the locale encoding, and changes for"
        " functions after the state or of a batch.",
        "rows of the kept state were computed with the old values. A rebuild replays batches with the values of "
        "their runs and makes the same state: start with the old values, or accept the change.",
        Effect.CHANGES_ROWS,
    ),
    _change(
        "input-changed",
        "The input of a stateful operator has changed.",
        "the source, a union, an operator below, or a step that makes rows, such as explode, differs.",
        "rows of the kept state were made the old way.",
    ),
    _change(
        "input-columns-changed",
        "A stateful function is called with different columns.",
        "a column was removed, or has a different expression.",
        "the function computed the kept state from the old columns. An added column has no effect on it.",
        Effect.CHANGES_ROWS,
        only_with=FUNCTION,
    ),
    _change(
        "filter-before-state-changed",
        "A filter before a stateful operator was added, removed or changed.",
        "the conditions for rows that reach a stateful operator differ.",
        "rows of the kept state passed the old filter. Spark's guide allows the change.",
        Effect.CHANGES_ROWS,
    ),
    _change(
        "join-type-changed",
        "The type of a stream-stream join has changed.",
        "the type (inner, left, right, full or semi) differs.",
        "an outer join records which rows have matched. Spark 4.3 can silently accept state of a different type: "
        "rows without a match are then missing, or written although they had a match.",
        acceptable=False,
        only_with=JOIN,
    ),
    _change(
        "join-keys-changed",
        "A stream-stream join compares different columns for equality.",
        "the equality conditions of the join differ.",
        "the state stores rows by the old keys. Spark refuses different types; with the same types the new keys do "
        "not find kept rows.",
        only_with=JOIN,
    ),
    _change(
        "join-condition-changed",
        "A further condition of a stream-stream join has changed.",
        "a condition such as a time bound was added, removed or changed.",
        "the old condition decided which rows of the state were dropped, and which matches were written.",
        only_with=JOIN,
    ),
    _change(
        "join-columns-changed",
        "A stream-stream join keeps different columns of a side.",
        "the rows that the join keeps of one side have different columns, types or order.",
        "Spark refuses different types, and reads the same types by position.",
        only_with=JOIN,
    ),
    _change(
        "join-sides-swapped",
        "The sides of a stream-stream join are swapped.",
        "each side of the join is the former other side.",
        "Spark stores the rows and the source position of each side by number: the kept rows of one side would "
        "belong to the other.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        only_with=JOIN,
    ),
    _change(
        "window-changed",
        "The length, slide, offset or time column of a window has changed.",
        "a window of an aggregation differs. If the old program is not recorded, only the lengths are compared, if "
        "known.",
        "the key has the same type, so Spark reads the state: old and new windows exist side by side, and windows "
        "in between are missing or doubled in the output. In complete mode the whole result is written again.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        only_with=AGGREGATE,
    ),
    _change(
        "window-kind-changed",
        "A window became a session, or a session a window.",
        "the query groups by sessions instead of windows of a fixed length, or the reverse.",
        "Spark cannot read the state, which has a different layout. Written windows stay in the output.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        acceptable=False,
        only_with=AGGREGATE,
    ),
    _change(
        "session-gap-changed",
        "The gap of a session window has changed.",
        "the gap of the sessions differs.",
        "sessions of the state were closed or merged by the old gap, and written sessions cannot be merged again.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        only_with=AGGREGATE,
    ),
    _change(
        "watermark-added",
        "A watermark was added.",
        "a withWatermark was added before a stateful operator.",
        "the state has rows that the watermark would have dropped as late. The watermark starts at the epoch.",
        Effect.CHANGES_ROWS,
    ),
    _change(
        "watermark-removed",
        "A watermark was removed.",
        "a withWatermark before a stateful operator was removed.",
        "state is never removed again, and late rows restart groups that were written and dropped.",
    ),
    _change(
        "watermark-column-changed",
        "The watermark uses a different column.",
        "withWatermark names a different column or expression.",
        "the new watermark continues from the recorded time of the old column: rows count as late, or state is "
        "dropped, by unrelated times.",
        Effect.NOT_RESTORABLE,
        goal="reset",
    ),
    _change(
        "watermark-delay-changed",
        "The delay of a watermark has changed.",
        "withWatermark has a different delay.",
        "a watermark never goes back. A longer delay takes effect only after it has passed, and windows closed by "
        "the old delay stay closed, as `run` also reports; with a shorter delay windows close at once, and the "
        "state has rows that it would have dropped as late.",
        Effect.CHANGES_ROWS,
        goal=None,
    ),
    _change(
        "time-zone-changed",
        "The session's time zone has changed.",
        "`spark.sql.session.timeZone` differs, and a source parses times without a zone or a function may use it.",
        "such times in rows of the kept state were read in the old zone. A rebuild keeps the zone of each run.",
        Effect.CHANGES_ROWS,
        goal=None,
    ),
    _change(
        "timeout-changed",
        "The timeout or time mode of a stateful function has changed.",
        "the stateful function has a different timeout or time mode.",
        "timeouts in the state were set by the old mode. Spark refuses a change between no timeout and any timeout,"
        " because the state has a different layout.",
        only_with=FUNCTION,
    ),
    _change(
        "output-mode-changed",
        "The output mode has changed.",
        "the query wrote in a different mode: append, update or complete.",
        "no checkpoint records the mode. With an aggregation, groups that were written while open are written "
        "again, or groups without further rows are never written. Without an aggregation the rows are the same.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        only_with=AGGREGATE,
    ),
    _change(
        "output-changed",
        "The rows are computed differently after the last stateful operator.",
        "a filter, a column or a function after the state differs, or the function that writes the rows, or any of "
        "these in a query without state.",
        "Spark's guide allows it. An interrupted batch runs again with the new code.",
        Effect.COMPATIBLE,
        goal=None,
    ),
    _change(
        "output-schema-changed",
        "The columns of the output have changed.",
        "the names or types of the output's columns differ.",
        "Spark's file sink accepts any columns, so its files differ; a table refuses a schema that it does not "
        "allow before the query starts.",
        Effect.COMPATIBLE,
        goal=None,
    ),
)
