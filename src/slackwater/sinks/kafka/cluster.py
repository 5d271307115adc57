"""A Kafka cluster and its topics for a sink: servers, connection settings, password reference.

Spark's ``kafka.*`` options are the Java client's; exactly-once sinks use librdkafka, with partly different names:
https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md. Its client, an extra, is imported lazily.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from slackwater.core.errors import EnvironmentMissing, PipelineError
from slackwater.sinks.common.options import password_reference, read_password

if TYPE_CHECKING:
    from slackwater.sinks.kafka.marked import MarkedTopic


PREFIX = "kafka."
RECORDED = frozenset(
    {
        *("security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username"),
        *("sasl.kerberos.service.name", "sasl.kerberos.principal", "sasl.kerberos.keytab"),
        *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.endpoint.identification.algorithm"),
        *("enable.ssl.certificate.verification", "client.dns.lookup", "broker.address.family"),
    }
)
"""Settings without secrets that are needed to read the topic; kept with the sink's identity."""
CONNECTION = ("security.", "sasl.", "ssl.", "socket.", "client.", "broker.", "enable.ssl.")
"""Settings that clients of every kind have. All others are for producers only."""
RENAMED = {"max.request.size": "message.max.bytes"}
JAAS = "sasl.jaas.config"
JAAS_LOGIN = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')

_KNOWN: dict[tuple[str, frozenset[tuple[str, str]]], Mapping[str, str]] = {}
"""Connection secrets from the running program, by servers and recorded settings. They are not recorded."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """``settings`` are recordable librdkafka settings. ``password`` is ``env:NAME`` or ``file:PATH``.

    ``others`` are producer settings or secrets.
    """

    servers: str
    settings: Mapping[str, str] = field(default_factory=dict)
    password: str | None = None
    others: Mapping[str, str] = field(default_factory=dict, repr=False)

    def identity(self) -> dict[str, str]:
        reference = {"password": self.password} if self.password else {}
        return {"bootstrap_servers": self.servers, **{PREFIX + k: v for k, v in self.settings.items()}, **reference}

    def connection(self) -> dict[str, str]:
        """The settings for any client. Raises StreamFailed (``sink-password-missing``)."""
        return {name: value for name, value in self._all().items() if name.startswith(CONNECTION)} | self._base()

    def producing(self) -> dict[str, str]:
        return self._all() | self._base()

    def _all(self) -> dict[str, str]:
        secret = {"sasl.password": read_password(self.password, self.servers)} if self.password else {}
        return {**self.settings, **self.others, **secret}

    def _base(self) -> dict[str, str]:
        # The client logs each failed connection to stderr; our error reports it once.
        return {"bootstrap.servers": self.servers, "log_level": "0"}


def cluster_of(servers: str, options: Mapping[str, str], password: object) -> Cluster:
    foreign = sorted(name for name in options if not name.startswith(PREFIX))
    if foreign:
        raise PipelineError(
            "kafka-option",
            "An option of the exactly-once Kafka sink is no setting of Kafka's client",
            expected=f"names that start with {PREFIX}",
            found=", ".join(foreign),
        )
    settings = {name.removeprefix(PREFIX): value for name, value in options.items()}
    settings = {RENAMED.get(name, name): value for name, value in settings.items()}
    if JAAS in settings:
        settings |= _login_of(settings.pop(JAAS))
    reference = password_reference(password, 'give "kafka.sasl.jaas.config" to keep it in this program only')
    if reference is not None and "sasl.password" in settings:
        raise PipelineError("sink-password", "The password of the sink is given twice", hint="remove one of them")
    recorded = {name: value for name, value in sorted(settings.items()) if name in RECORDED}
    others = {name: value for name, value in settings.items() if name not in RECORDED}
    secrets = {name: value for name, value in others.items() if name.startswith(CONNECTION)}
    if secrets:
        _KNOWN[_key(servers, recorded)] = secrets
    return Cluster(servers, recorded, reference, others)


def cluster_in(identity: Mapping[str, str]) -> Cluster:
    settings = {name.removeprefix(PREFIX): value for name, value in identity.items() if name.startswith(PREFIX)}
    servers = identity["bootstrap_servers"]
    return Cluster(servers, settings, identity.get("password"), _KNOWN.get(_key(servers, settings), {}))


def _login_of(jaas: str) -> dict[str, str]:
    found = {name: re.sub(r"\\(.)", r"\1", value) for name, value in JAAS_LOGIN.findall(jaas)}
    if "username" not in found or "password" not in found:
        raise PipelineError(
            "kafka-option",
            f"The option {PREFIX}{JAAS} of the exactly-once Kafka sink has no user and password",
            expected='... required username="..." password="...";',
            found="something else, not shown here",
            hint="other logins are settings of librdkafka: kafka.sasl.*",
        )
    return {"sasl.username": found["username"], "sasl.password": found["password"]}


def _key(servers: str, settings: Mapping[str, str]) -> tuple[str, frozenset[tuple[str, str]]]:
    return servers, frozenset(settings.items())


@dataclass(frozen=True)
class TopicAddress:
    cluster: Cluster
    topic: str
    marker: str

    @property
    def location(self) -> str:
        return f"{self.cluster.servers} {self.topic} (marker {self.marker})"


def open_topic(address: TopicAddress) -> MarkedTopic:
    if not has_client():
        raise EnvironmentMissing(
            "extra-missing", "An exactly-once Kafka sink needs confluent-kafka", where=address.location,
            hint="pip install confluent-kafka",
        )  # fmt: skip
    from slackwater.sinks.kafka.marked import MarkedTopic  # noqa: PLC0415 - imports confluent_kafka, an extra

    return MarkedTopic(address.cluster, address.topic, address.marker)


def has_client() -> bool:
    return find_spec("confluent_kafka") is not None
