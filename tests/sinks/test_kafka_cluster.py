"""How a Kafka cluster is reached: what is recorded of it, where secrets stay, which changes are the same sink."""

import json
from typing import Any

import slackwater as sw
from slackwater.sinks.common.registry import is_same_sink, open_output
from slackwater.sinks.kafka.sink import MarkedTopicOutput

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p\\"q";'


def _sink(servers: str = "b:1", topic: str = "clicks", **options: Any) -> Any:
    return sw.sinks.kafka(topic, bootstrap_servers=servers, exactly_once=True, **options)


def _connection(identity: Any) -> dict[str, str]:
    output = open_output(identity)
    assert isinstance(output, MarkedTopicOutput)
    return output.address.cluster.connection()


def test_a_login_in_the_options_is_known_to_this_program_only() -> None:
    secured = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.jaas.config": JAAS, "kafka.linger.ms": "5"}
    sink = _sink(**secured)
    assert 'p"q' not in repr(sink) + json.dumps(dict(sink.identity()))
    assert sink.identity()["kafka.sasl.username"] == "u"
    assert _connection(sink.identity())["sasl.password"] == 'p"q'
    assert sink.target.cluster.producing()["linger.ms"] == "5"
    assert "linger.ms" not in _connection(sink.identity())
    assert "sasl.password" not in _connection(_sink("other:1").identity())
    assert "sasl.password" not in _connection({**sink.identity(), "kafka.sasl.username": "v"})


def test_options_of_one_sink_are_not_those_of_another() -> None:
    slow, other = _sink(**{"kafka.linger.ms": "500"}), _sink(topic="orders")
    assert slow.target.cluster.producing()["linger.ms"] == "500"
    assert "linger.ms" not in other.target.cluster.producing()
    assert _sink(**{"kafka.max.request.size": "7"}).target.cluster.producing()["message.max.bytes"] == "7"


def test_servers_and_logins_may_change_and_topics_may_not() -> None:
    known = _sink().identity()
    assert is_same_sink(known, _sink("a:1,b:1", **{"kafka.security.protocol": "SSL"}).identity())
    assert not is_same_sink(known, _sink(topic="orders").identity())
    assert not is_same_sink(known, _sink(marker_topic="marks").identity())
    assert not is_same_sink(known, sw.sinks.kafka("clicks", bootstrap_servers="b:1").identity())
    assert not is_same_sink({"kind": "files", "path": "a"}, {"kind": "files", "path": "b"})
