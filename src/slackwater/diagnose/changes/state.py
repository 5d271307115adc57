"""Changes of the operators with state: keys, aggregates, deduplication, functions."""

from __future__ import annotations

from slackwater.core.verdict import Effect
from slackwater.diagnose.changes.common.text import AGGREGATE, FUNCTION, ChangeText

GROUP = (
    ChangeText(
        "operators-changed",
        "A stateful operator was added, removed, replaced or moved.",
        "the query has other operators with state, or the same ones in another order.",
        "Spark keeps state by the number of an operator. Spark 4 refuses another name for a number; Spark 3.5 reads "
        "the state of one operator as that of another, and can drop all rows silently.",
        Effect.NOT_RESTORABLE,
        "reset",
        acceptable=False,
        in_files=True,
    ),
    ChangeText(
        "keys-changed",
        "An aggregation or a function with state groups by other keys.",
        "the grouping keys differ in number, expression, type or order.",
        "with other types Spark refuses the state. With the same types it reads it: groups of the old keys are "
        "never found again, and new groups start from nothing. Of the new groups a rebuild has those that it reads "
        "again.",
        Effect.NOT_RESTORABLE,
        "reset",
        in_files=True,
    ),
    ChangeText(
        "aggregates-changed",
        "An aggregation computes other aggregates.",
        "the aggregate functions differ in number, function, argument, type or order.",
        "the state has the intermediate values of the old ones. Where their types agree Spark continues with them: "
        "a count can become a sum, without an error.",
        only_with=AGGREGATE,
    ),
    ChangeText(
        "dedup-keys-changed",
        "A deduplication compares other columns.",
        "the columns of dropDuplicates differ in number, expression, type or order.",
        "the state has the values of the old columns: Spark refuses other types; with the same types it takes rows "
        "for duplicates of others, or writes duplicates.",
        Effect.NOT_RESTORABLE,
        "reset",
        in_files=True,
    ),
    ChangeText(
        "dedup-kind-changed",
        "A deduplication became the other kind.",
        "dropDuplicates became dropDuplicatesWithinWatermark, or the other way round.",
        "they keep different state, and Spark refuses one for the other. State within the watermark depends on the "
        "order of the rows and cannot be computed again.",
        Effect.NOT_RESTORABLE,
        "reset",
        acceptable=False,
        only_with=frozenset({"deduplicate", "deduplicate-within-watermark"}),
    ),
    ChangeText(
        "limit-changed",
        "A limit is another one.",
        "the number of a limit differs.",
        "the state has the number of rows that passed. Rows beyond the old limit were dropped and do not come back.",
        Effect.CHANGES_ROWS,
        None,
        only_with=frozenset({"limit"}),
    ),
    ChangeText(
        "state-schema-changed",
        "A function with state declares other state.",
        "the schema of the state differs, or the init() of a processor that declares its variables has changed.",
        "Spark compares the types of the state, and refuses others. With the same types the fields are read by "
        "position.",
        only_with=FUNCTION,
    ),
    ChangeText(
        "function-changed",
        "A function that state depends on has changed.",
        "the text of a Python function, or of what it reaches, differs, or a value that it takes with it: of a "
        "variable of a module or a function around it, a default, an argument of a partial, what an object or a class "
        "has, a broadcast variable. An operator with state uses it. Of values only digests are recorded, of secrets "
        "nothing.",
        "rows of the kept state were computed by the old function.",
        Effect.CHANGES_ROWS,
    ),
    ChangeText(
        "environment-changed",
        "What a function that state depends on gets from its process has changed.",
        "the time zone of the process, an environment variable that the function names, or a setting "
        "`spark.executorEnv.*` differs. Of values only digests are recorded, of secrets nothing. Another version of "
        "Python or of a library that the function uses, or another encoding of the locale, is a note.",
        "rows of the kept state were computed with the old values. Those of variables and of the process's time zone "
        "are not set again for a replay: it computes with the present ones.",
        Effect.CHANGES_ROWS,
    ),
    ChangeText(
        "input-changed",
        "The rows that reach an operator with state come from elsewhere.",
        "the source, a union, an operator below, or a step that makes rows of others, such as explode, differs.",
        "rows of the kept state were made the old way.",
    ),
    ChangeText(
        "input-columns-changed",
        "A function with state is called with other columns.",
        "a column was removed, or is another expression.",
        "the function computed the kept state from the old columns. A column more changes nothing for it.",
        Effect.CHANGES_ROWS,
        only_with=FUNCTION,
    ),
    ChangeText(
        "filter-before-state-changed",
        "A filter before an operator with state was added, removed or changed.",
        "the conditions that rows pass before an operator with state differ.",
        "rows of the kept state passed the old filter. Spark's guide allows the change.",
        Effect.CHANGES_ROWS,
    ),
)
