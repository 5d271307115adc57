"""Changes of the sources."""

from __future__ import annotations

from slackwater.core.verdict import Effect
from slackwater.diagnose.changes.common.text import ChangeText

GROUP = (
    ChangeText(
        "sources-changed",
        "The query reads other sources.",
        "the number of sources differs, or a source is of another kind or reads another path, topic or table.",
        "Spark keeps positions by the number of a source, without its name. Another number of sources is refused; "
        "another source gets the position of the old one, and reads rows again or leaves them out. Topics that are "
        "added or removed are allowed: what is read from here on is of other places.",
        Effect.NOT_RESTORABLE,
        "reset",
        in_files=True,
    ),
    ChangeText(
        "sources-reordered",
        "The sources are in another order.",
        "the query has the same sources in another order, as in a union written the other way round.",
        "Spark keeps positions by the number of a source: each source continues at the position of another one, and "
        "Spark does not compare them.",
        Effect.NOT_RESTORABLE,
        "reset",
        acceptable=False,
        in_files=True,
    ),
    ChangeText(
        "source-format-changed",
        "A source reads its files in another format.",
        "a file source reads the same path with another format, such as JSON instead of CSV.",
        "files that were planned and not processed are read in the new format; rows of the state came from the old "
        "one.",
        Effect.CHANGES_ROWS,
        None,
        stateless=True,
    ),
    ChangeText(
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
    ChangeText(
        "start-position-ignored",
        "The start position of a source was changed, and has no effect.",
        "an option that says where a new query starts, such as startingOffsets or startingVersion, has another value.",
        "Spark uses it for a new checkpoint only, and ignores it silently where the checkpoint has a position. To read "
        "older rows again, or to leave rows out, the position has to be set.",
        Effect.COMPATIBLE,
        None,
        stateless=True,
        covers=("KAFKA-07",),
    ),
    ChangeText(
        "source-schema-changed",
        "A column of a source has another type.",
        "the schema of a source has another type for a column that both versions of the query have.",
        "Spark compares the types of keys and values in the state with those of the query, and refuses others. A "
        "column that the state does not have only changes rows from here on.",
    ),
)
