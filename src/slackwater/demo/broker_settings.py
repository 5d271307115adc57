"""How the demo's broker is configured: one node that is broker and controller, on this machine only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HOST = "127.0.0.1"
CLUSTER_ID = "c2xhY2t3YXRlci1kZW1vLQ"
"""A fixed one: each folder holds one cluster, and nothing joins it."""

HEAP = ("-Xmx512m", "-Xms128m", "-XX:+UseSerialGC")

# One of everything, so that internal topics come up with a single node; short delays, because consumers come and go and
# tests wait for retention. Topics are not created automatically: a misspelt name must not create one.
_SERVER = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=0
auto.create.topics.enable=false
"""

_LOGGING = """status=error
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d %p %m (%c)%n
rootLogger.level=warn
rootLogger.appenderRef.stdout.ref=stdout
"""


def server_file(folder: Path) -> Path:
    return folder / "server.properties"


def logging_file(folder: Path) -> Path:
    return folder / "log4j2.properties"


def data_folder(folder: Path) -> Path:
    return folder / "data"


def write_settings(folder: Path, port: int, controller_port: int, more: Mapping[str, str]) -> None:
    """Writes the broker's own two files into its folder; ``more`` adds to the settings or replaces them."""
    text = _SERVER.format(host=HOST, port=port, controller_port=controller_port, data=data_folder(folder))
    # Of two lines for one setting Java takes the last.
    server_file(folder).write_text(text + "".join(f"{name}={value}\n" for name, value in more.items()))
    logging_file(folder).write_text(_LOGGING)
