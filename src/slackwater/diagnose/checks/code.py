"""Changes of a query's code: effects on kept state, and corrections.

The modules ``*_changes`` find them, by comparing two programs or a program and a checkpoint; ``doctor`` shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.core.commands import mention
from slackwater.core.facts import Judged
from slackwater.core.finding import Severity
from slackwater.core.program import OperatorKind
from slackwater.core.verdict import ChangeGoal, Effect
from slackwater.diagnose.checks.common.check import HEADINGS, Check

_GUIDE = 'Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"'

_COMPUTE = mention("plan", "rebuild", "STREAM", "--pipeline", "FILE")
_PROCESS = mention("plan", "reset", "STREAM", "--from", "earliest", "--pipeline", "FILE")
REMEDIES_BY_GOAL: Mapping[ChangeGoal | None, Mapping[str, str]] = {
    "rebuild": {
        "remedy": f"`{_COMPUTE}` computes the state again with the new code; or bring the old code back. Where only a "
        "setting of the session differs, start with the old one: batches are replayed under the settings of their "
        "runs.",
        "safe": "yes; the plan shows which batches are read again, and the old checkpoint is kept until it is pruned.",
    },
    "reset": {
        "remedy": f"`{_PROCESS}` processes everything again; or bring the old code back, or give the changed stream a "
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
class ChangeOfCode(Check[Judged]):
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
        "The query reads other sources.",
        "the number of sources differs, or a source is of another kind or reads another path, topic or table.",
        "Spark keeps positions by the number of a source, without its name. Another number of sources is refused; "
        "another source gets the position of the old one, and reads rows again or leaves them out. Topics that are "
        "added or removed are allowed: what is read from here on is of other places.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        in_files=True,
    ),
    _change(
        "sources-reordered",
        "The sources are in another order.",
        "the query has the same sources in another order, as in a union written the other way round.",
        "Spark keeps positions by the number of a source: each source continues at the position of another one, and "
        "Spark does not compare them.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        acceptable=False,
        in_files=True,
    ),
    _change(
        "source-format-changed",
        "A source reads its files in another format.",
        "a file source reads the same path with another format, such as JSON instead of CSV.",
        "files that were planned and not processed are read in the new format; rows of the state came from the old "
        "one.",
        Effect.CHANGES_ROWS,
        goal=None,
        stateless=True,
    ),
    _change(
        "source-options-changed",
        "An option of a source was changed.",
        "an option that decides which rows a source reads, or how it parses them, has another value. Rate limits "
        "and options of the client are not compared.",
        "rows of the kept state were read with the old value. A query without state continues with the new one. "
        "fileNameOnly decides which files count as read: with it files of one name in two folders are one file, and "
        "the rows of one are left out; without it files that were moved are read again.",
        Effect.CHANGES_ROWS,
        stateless=True,
    ),
    _change(
        "start-position-ignored",
        "The start position of a source was changed, and has no effect.",
        "an option that says where a new query starts, such as startingOffsets or startingVersion, has another value.",
        "Spark uses it for a new checkpoint only, and ignores it silently where the checkpoint has a position. To read "
        "older rows again, or to leave rows out, the position has to be set.",
        Effect.COMPATIBLE,
        goal=None,
        stateless=True,
        also=("KAFKA-07",),
    ),
    _change(
        "source-schema-changed",
        "A column of a source has another type.",
        "the schema of a source has another type for a column that both versions of the query have.",
        "Spark compares the types of keys and values in the state with those of the query, and refuses others. A "
        "column that the state does not have only changes rows from here on.",
    ),
    _change(
        "operators-changed",
        "A stateful operator was added, removed, replaced or moved.",
        "the query has other operators with state, or the same ones in another order.",
        "Spark keeps state by the number of an operator. Spark 4 refuses another name for a number; Spark 3.5 reads "
        "the state of one operator as that of another, and can drop all rows silently.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        acceptable=False,
        in_files=True,
    ),
    _change(
        "keys-changed",
        "An aggregation or a function with state groups by other keys.",
        "the grouping keys differ in number, expression, type or order.",
        "with other types Spark refuses the state. With the same types it reads it: groups of the old keys are "
        "never found again, and new groups start from nothing. Of the new groups a rebuild has those that it reads "
        "again.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        in_files=True,
    ),
    _change(
        "aggregates-changed",
        "An aggregation computes other aggregates.",
        "the aggregate functions differ in number, function, argument, type or order.",
        "the state has the intermediate values of the old ones. Where their types agree Spark continues with them: "
        "a count can become a sum, without an error.",
        only_with=AGGREGATE,
    ),
    _change(
        "dedup-keys-changed",
        "A deduplication compares other columns.",
        "the columns of dropDuplicates differ in number, expression, type or order.",
        "the state has the values of the old columns: Spark refuses other types; with the same types it takes rows "
        "for duplicates of others, or writes duplicates.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        in_files=True,
    ),
    _change(
        "dedup-kind-changed",
        "A deduplication became the other kind.",
        "dropDuplicates became dropDuplicatesWithinWatermark, or the other way round.",
        "they keep different state, and Spark refuses one for the other. State within the watermark depends on the "
        "order of the rows and cannot be computed again.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        acceptable=False,
        only_with=frozenset({"deduplicate", "deduplicate-within-watermark"}),
    ),
    _change(
        "limit-changed",
        "A limit is another one.",
        "the number of a limit differs.",
        "the state has the number of rows that passed. Rows beyond the old limit were dropped and do not come back.",
        Effect.CHANGES_ROWS,
        goal=None,
        only_with=frozenset({"limit"}),
    ),
    _change(
        "state-schema-changed",
        "A function with state declares other state.",
        "the schema of the state differs, or the init() of a processor that declares its variables has changed.",
        "Spark compares the types of the state, and refuses others. With the same types the fields are read by "
        "position.",
        only_with=FUNCTION,
    ),
    _change(
        "function-changed",
        "A function that state depends on has changed.",
        "the text of a Python function, or of what it reaches, differs, or a value that it takes with it: of a "
        "variable of a module or a function around it, a default, an argument of a partial, what an object or a class "
        "has, a broadcast variable, a file below the project that the code names by a literal path. An operator with "
        "state uses it, or it is the class of a data source. Of values only digests are recorded, of secrets nothing.",
        "rows of the kept state were computed by the old function.",
        Effect.CHANGES_ROWS,
    ),
    _change(
        "function-not-repeatable",
        "A function depends on what cannot be compared.",
        "its code, or code that it calls, uses chance, the clock, the network or files other than those below the "
        "project that the code names by a literal path; these files are compared. Said once of each function.",
        "what it gets from there is not recorded: a batch that is run again, by a restart or a rebuild, may get other "
        "rows.",
        Effect.SAME,
        goal=None,
        stateless=True,
    ),
    _change(
        "environment-changed",
        "What a Python function gets from its process has changed.",
        "the time zone of the process, an environment variable that the function names, or a setting "
        "`spark.executorEnv.*` differs. Values are recorded with each run as settings are, of secrets nothing. Another "
        "version of Python or of a library that the function uses, another encoding of the locale, and what functions "
        "behind the state, or of a batch, get are notes.",
        "rows of the kept state were computed with the old values. Batches are replayed with those of their runs, so "
        "that a rebuild makes the same state again: start with the old ones, or accept the change.",
        Effect.CHANGES_ROWS,
    ),
    _change(
        "input-changed",
        "The rows that reach an operator with state come from elsewhere.",
        "the source, a union, an operator below, or a step that makes rows of others, such as explode, differs.",
        "rows of the kept state were made the old way.",
    ),
    _change(
        "input-columns-changed",
        "A function with state is called with other columns.",
        "a column was removed, or is another expression.",
        "the function computed the kept state from the old columns. A column more changes nothing for it.",
        Effect.CHANGES_ROWS,
        only_with=FUNCTION,
    ),
    _change(
        "filter-before-state-changed",
        "A filter before an operator with state was added, removed or changed.",
        "the conditions that rows pass before an operator with state differ.",
        "rows of the kept state passed the old filter. Spark's guide allows the change.",
        Effect.CHANGES_ROWS,
    ),
    _change(
        "join-type-changed",
        "A stream-stream join is of another type.",
        "the join is inner, left, right, full or semi, and was another one.",
        "an outer join keeps which rows have matched. Spark 4.3 can accept the state of another type silently: rows "
        "without a match are then missing, or written although they had one.",
        acceptable=False,
        only_with=JOIN,
    ),
    _change(
        "join-keys-changed",
        "A stream-stream join compares other columns for equality.",
        "the equality conditions of the join differ.",
        "rows of the state are stored by the old keys: Spark refuses other types; with the same types kept rows are "
        "not found by the new keys.",
        only_with=JOIN,
    ),
    _change(
        "join-condition-changed",
        "A stream-stream join has another condition besides equality.",
        "a condition such as a bound on times was added, removed or changed.",
        "the old condition decided which rows of the state were dropped, and which matches were written.",
        only_with=JOIN,
    ),
    _change(
        "join-columns-changed",
        "A stream-stream join keeps other columns of a side.",
        "the rows that the join keeps of one side have other columns, types or order.",
        "the state has rows of the old form. Spark refuses other types, and reads the same types by position.",
        only_with=JOIN,
    ),
    _change(
        "join-sides-swapped",
        "The sides of a stream-stream join are swapped.",
        "each side of the join is what the other one was.",
        "Spark keeps the rows of each side, and the position of its source, by its number: the kept rows of one "
        "side would be those of the other.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        only_with=JOIN,
    ),
    _change(
        "window-changed",
        "A window has another length, slide, offset or time column.",
        "a window of an aggregation is another one. Where the program of the old query is not recorded, only the "
        "lengths are compared, if they are.",
        "the type of the key is the same, so that Spark reads the state: old and new windows exist side by side, "
        "and those between are absent or doubled in the output. In complete mode the whole result is written again.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        only_with=AGGREGATE,
    ),
    _change(
        "window-kind-changed",
        "A window became a session, or a session a window.",
        "the query groups by sessions where it grouped by windows of a fixed length, or the other way round.",
        "the state of sessions has another layout, which Spark cannot read. Windows that were written stay in the "
        "output.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        acceptable=False,
        only_with=AGGREGATE,
    ),
    _change(
        "session-gap-changed",
        "The gap of a session window is another one.",
        "the gap of the sessions differs.",
        "sessions of the state were closed or merged by the old gap, and those that were written cannot be merged "
        "again.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        only_with=AGGREGATE,
    ),
    _change(
        "watermark-added",
        "A watermark was added.",
        "rows that reach an operator with state pass a withWatermark that they did not pass before.",
        "rows that the watermark would have dropped as late are in the state. The watermark starts at the epoch.",
        Effect.CHANGES_ROWS,
    ),
    _change(
        "watermark-removed",
        "A watermark was removed.",
        "rows that reach an operator with state no longer pass a withWatermark.",
        "state is never removed again, and late rows start groups again that were dropped and written before.",
    ),
    _change(
        "watermark-column-changed",
        "The watermark is of another column.",
        "withWatermark names another column, or an expression of another one.",
        "the recorded watermark is a time of the old column, and the new one continues from it: rows count as late, "
        "or state is dropped, by times that have nothing to do with each other.",
        Effect.NOT_RESTORABLE,
        goal="reset",
    ),
    _change(
        "watermark-delay-changed",
        "The delay of a watermark is another one.",
        "withWatermark has another delay.",
        "a watermark never goes back. With a longer delay it stays where it is until the delay has passed, "
        "and windows that the old delay has closed stay closed, which `run` says, too; with a shorter one windows "
        "close at once, and rows that it would have dropped as late are in the state.",
        Effect.CHANGES_ROWS,
        goal=None,
    ),
    _change(
        "time-zone-changed",
        "The session's time zone is another one.",
        "`spark.sql.session.timeZone` differs, and a source parses times without a zone or a function may use it.",
        "such times in rows of the kept state were read in the old zone. A rebuild keeps the zone of each run.",
        Effect.CHANGES_ROWS,
        goal=None,
    ),
    _change(
        "timeout-changed",
        "The timeout or the time mode of a function with state is another one.",
        "the function with state has another timeout or time mode.",
        "timeouts of the state were set by the old mode. Between no timeout and one the layout of the state "
        "differs, and Spark refuses it.",
        only_with=FUNCTION,
    ),
    _change(
        "output-mode-changed",
        "The output mode is another one.",
        "the query writes in append, update or complete mode, and wrote in another one.",
        "the mode is in no checkpoint. With an aggregation groups that were written while they were open are "
        "written again, or groups that get no further row are never written. Without one the rows are the same.",
        Effect.NOT_RESTORABLE,
        goal="reset",
        only_with=AGGREGATE,
    ),
    _change(
        "output-changed",
        "The rows are computed in another way after the last operator with state.",
        "a filter, a column or a function after the state differs, or the function that writes the rows, or the query "
        "has no state.",
        "Spark's guide allows it. An interrupted batch runs again with the new code.",
        Effect.COMPATIBLE,
        goal=None,
    ),
    _change(
        "output-schema-changed",
        "The output has other columns.",
        "the names or types of the output's columns differ.",
        "Spark's file sink takes any columns, so that its files differ then; a table refuses what its schema does "
        "not allow, and the sink says so before the query starts.",
        Effect.COMPATIBLE,
        goal=None,
    ),
)
