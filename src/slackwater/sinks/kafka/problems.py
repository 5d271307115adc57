"""Translates errors of Kafka's client: cause, use of a restart, next step.

Names are librdkafka's; without a leading underscore, the protocol's (https://kafka.apache.org/protocol, "Error Codes").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException

from slackwater.core.errors import PipelineError, StreamFailed
from slackwater.sinks.common.problem import TASK_ERROR, Problem, unreadable

REPORTED = "Kafka reports an error"
LOOK_UP = "the broker's log has the cause; the name in brackets is that of librdkafka; then run the pipeline again"
NAMED = re.compile(r"(?P<name>[A-Z_]+): (?P<text>.*)", re.DOTALL)
_UNREACHABLE = Problem(
    "broker-unreachable", "No Kafka broker answers in time", "check bootstrap_servers, and that the broker runs"
)
_LOGIN = Problem(
    "kafka-login",
    "The Kafka broker refuses the login",
    'check kafka.security.protocol, kafka.sasl.mechanism and the user; password="env:NAME" names where it is',
)
_PRIVILEGE = Problem(
    "kafka-privilege",
    "The user of the Kafka sink lacks a permission",
    "allow the user to write to the topic, to read and write the marker topic, and to use the transactional id: "
    "kafka-acls.sh --add --producer --transactional-id slackwater- --resource-pattern-type prefixed",
)
_FENCED = Problem(
    "kafka-fenced",
    "The transaction was ended by another producer with its transactional id, or by its timeout",
    "if a batch takes longer than kafka.transaction.timeout.ms, raise it, or make batches smaller",
)
_MISSING = Problem("kafka-partition", "A topic or a partition that a row names does not exist", "correct the query")
_BY_NAME = {
    **dict.fromkeys(("_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_TIMED_OUT_QUEUE", "_RESOLVE"), _UNREACHABLE),
    **dict.fromkeys(("_MSG_TIMED_OUT", "REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE"), _UNREACHABLE),
    **dict.fromkeys(("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "LEADER_NOT_AVAILABLE"), _UNREACHABLE),
    **dict.fromkeys(("_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED"), _LOGIN),
    **dict.fromkeys(("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"), _PRIVILEGE),
    **dict.fromkeys(("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"), _PRIVILEGE),
    **dict.fromkeys(("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"), _FENCED),
    **dict.fromkeys(("_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART"), _MISSING),
    "INVALID_TRANSACTION_TIMEOUT": Problem(
        "kafka-transaction-timeout",
        "The broker allows no transaction as long as this one's timeout",
        "give a smaller kafka.transaction.timeout.ms, or raise transaction.max.timeout.ms of the broker",
    ),
    "MSG_SIZE_TOO_LARGE": Problem(
        "kafka-message-size",
        "A row is larger than a message may be",
        "raise kafka.max.request.size and the topic's max.message.bytes, or make rows smaller",
    ),
}


def problem_of(error: BaseException) -> Problem | None:
    """The problem of an exception, which Spark may quote from a task; ``None`` if it is not Kafka's."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return _named(error.args[0].name(), error.args[0].str())
    own = TASK_ERROR.search(str(error))
    if own is None:
        return None
    match = NAMED.fullmatch(own["text"]) if own["code"] == "kafka" else None
    if match is not None:
        return _named(match["name"], match["text"])
    known = next(
        (one for one in _BY_NAME.values() if one.code == own["code"]), Problem("kafka-failed", REPORTED, LOOK_UP)
    )
    return replace(known, found=own["text"])


@contextmanager
def reading(where: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise _found(error).unreadable(where) from error
    except StreamFailed as error:
        raise unreadable(error) from error


@contextmanager
def writing(where: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        if error.args[0].name() in {"_INVALID_ARG", "_CONFLICT"}:
            raise PipelineError(
                "kafka-option",
                "Kafka's client cannot use an option of the sink",
                where=where,
                found=error.args[0].str(),
                hint="exactly-once sinks use librdkafka; its CONFIGURATION.md lists the settings",
            ) from error
        raise _found(error).failed(where) from error


def _found(error: BaseException) -> Problem:
    return problem_of(error) or Problem("kafka-failed", REPORTED, LOOK_UP, str(error))


def _named(name: str, text: str) -> Problem:
    known = _BY_NAME.get(name) or Problem("kafka-failed", REPORTED, LOOK_UP)
    return replace(known, found=" ".join(f"{text} ({name})".split())[:500])
