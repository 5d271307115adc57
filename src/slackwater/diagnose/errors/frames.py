"""Exceptions that no table knows: whose code has thrown them, and what their messages say (``common/thrown``).

A message counts least: the level ``WORDS`` is reported where neither a text nor a name is known.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.stores import ADDRESSES, PACKAGES
from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

_OF_STORE = (Near((*PACKAGES, *ADDRESSES), ("STORE-08",)),)
_IN_STORE = (Near((*PACKAGES, *ADDRESSES), ("STORE-05",)),)
_OF_KAFKA = (Near(("TopicPartition", "KafkaSource", "kafka010", "kafka.clients", "in Kafka"), ("KAFKA-01",)),)

_DEFECTS_OF_OTHERS = tuple(f"defect in {owner}" for owner in ("connector", "library", "client", "database"))


def _words(symptom: str, *codes: str, names: tuple[str, ...], near: tuple[Near, ...] = ()) -> ErrorText:
    return ErrorText(symptom, codes, names=names, level=Level.WORDS, certainty=Certainty.POSSIBLE, near=near)


def _code(symptom: str, *codes: str, names: tuple[str, ...], certainty: Certainty = Certainty.LIKELY) -> ErrorText:
    return ErrorText(symptom, codes, names=names, level=Level.GENERAL, certainty=certainty)


GROUP = (
    _code("defect-in-connector", "VER-06", names=_DEFECTS_OF_OTHERS),
    # A decoder that runs past the end of its input, or finds a branch that its schema does not have.
    _code("defect-in-parser", "APP-05", "VER-06", names=("defect in parser",)),
    _code("program-throws", "APP-01", names=("defect in program", "exception of program", "thrown by python")),
    # A NoSuchElementException for a key, or a value that the JDK cannot read, below a call of a library.
    _code("value-refused", "APP-09", "APP-05", names=("value refused",)),
    _words("parser-throws", "APP-05", names=("exception in parser",)),
    _words("client-throws", "SRC-05", names=("exception in client",), near=_OF_STORE),
    _words("database-throws", "SINK-09", names=("exception in database",)),
    _words("words-of-memory", "APP-02", names=("says memory",)),
    _words("words-of-space", "STORE-05", names=("says space",)),
    _words("words-of-position", "SRC-01", names=("says position",), near=_OF_KAFKA),
    _words("words-of-library", "VER-04", names=("says library",)),
    _words("words-of-service", "SRC-05", names=("says unreachable",), near=_OF_STORE),
    _words("words-of-access", "SRC-05", "STORE-05", names=("says access",), near=_IN_STORE),
    _words("words-of-process", "APP-03", names=("says process",)),
    _words("words-of-conflict", "SINK-07", names=("says conflict",)),
    _words("words-of-record", "APP-05", names=("says record",)),
    _words("words-of-query", "APP-04", names=("says unsupported",)),
    _words("words-of-option", "APP-09", names=("says option",)),
    _words("words-of-name", "APP-06", names=("says name",)),
    _words("words-of-row", "SINK-08", names=("says row",)),
    _words("words-of-reading", "SRC-05", names=("says reading fails",), near=_OF_STORE),
    _words("words-of-writing", "SINK-09", names=("says writing fails",), near=_OF_STORE),
    # What a connector parses while it writes is no record of the input: an answer of its service, or its own mistake.
    _code("parser-in-writing-connector", "VER-06", "SRC-05", names=("parser in writing connector",)),
    _code(
        *("connector-fails-to-write", "SINK-09", "VER-06"),
        names=("connector fails to write",),
        certainty=Certainty.POSSIBLE,
    ),
    _code(
        *("connector-fails-to-read", "SRC-05", "VER-06"),
        names=("connector fails to read",),
        certainty=Certainty.POSSIBLE,
    ),
)
