"""Metrics without Spark: what is served of a home, the port, and the names that dashboard and alerts use."""

import json
import re
import socket
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml

from slackwater.cli.common.stream_status import has_read_all
from slackwater.cli.verbs.run.metrics import METRICS, STATES, RunMetrics, served
from slackwater.core.records import BatchRecord, BatchSource
from slackwater.core.settings import load
from slackwater.ledger.ledger import Ledger
from tests.cli.conftest import Slackwater
from tests.support.homes import STREAM, HomeSpec, batch_record, make_home

EXAMPLES = Path(__file__).parents[2] / "examples" / "monitoring"
HOUR_S = 3600.0
OURS = re.compile(r"slackwater_\w+")


class Silent:
    """A display that keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[object] = []

    def say(self, text: str) -> None:
        self.shown.append(text)

    def state(self, stream: str, state: str) -> None:
        self.shown.append((stream, state))

    def batch(self, batch: BatchRecord) -> None:
        self.shown.append(batch)

    def idle(self, stream: str) -> None:
        self.shown.append((stream, "idle"))

    def restarted(self, stream: str) -> None:
        self.shown.append(stream)


def _value(metrics: RunMetrics, name: str, **labels: str) -> float | None:
    pipeline, stream = STREAM.split("/")
    return metrics.registry.get_sample_value(name, {"pipeline": pipeline, "stream": stream, **labels})


def _metrics(folder: Path) -> tuple[RunMetrics, Silent]:
    display = Silent()
    return RunMetrics(display, load(home=str(folder / ".slackwater"))), display


def _batch(rows: int, left: int) -> BatchRecord:
    source = BatchSource(
        "KafkaV2[Subscribe[t]]", None, json.dumps({"t": {"0": 10}}), json.dumps({"t": {"0": 10 + left}}), rows
    )
    return BatchRecord(
        STREAM, 1, 6, 0, rows, (source,), late_rows=2, output_rows=3, durations_ms={"triggerExecution": 1500}
    )


def test_events_are_counted_and_passed_on(tmp_path: Path) -> None:
    make_home(tmp_path)
    metrics, display = _metrics(tmp_path)
    metrics.state(STREAM, "running")
    assert _value(metrics, "slackwater_batches_total") == 0

    metrics.batch(_batch(rows=7, left=0))
    metrics.batch(_batch(rows=5, left=0))
    metrics.restarted(STREAM)
    metrics.state(STREAM, "waiting")

    assert _value(metrics, "slackwater_batches_total") == 2
    assert _value(metrics, "slackwater_input_rows_total") == 12
    assert _value(metrics, "slackwater_output_rows_total") == 6
    assert _value(metrics, "slackwater_late_rows_total") == 4
    assert _value(metrics, "slackwater_restarts_total") == 1
    assert _value(metrics, "slackwater_batch_duration_seconds_sum") == 3
    assert {state: _value(metrics, "slackwater_stream_state", state=state) for state in STATES} == {
        state: float(state == "waiting") for state in STATES
    }
    assert display.shown == [
        (STREAM, "running"), _batch(7, 0), _batch(5, 0), STREAM, (STREAM, "waiting"),
    ]  # fmt: skip


@pytest.mark.parametrize(("spec", "severity"), [(HomeSpec(), "info"), (HomeSpec(written=8), "stop")])
def test_the_number_line_is_read_from_files(tmp_path: Path, spec: HomeSpec, severity: str) -> None:
    make_home(tmp_path, spec)
    metrics, _ = _metrics(tmp_path)
    metrics.state(STREAM, "running")

    assert _value(metrics, "slackwater_mark_batch_id", mark="committed") == spec.committed
    assert _value(metrics, "slackwater_mark_batch_id", mark="written") == spec.written
    assert (_value(metrics, "slackwater_findings", severity=severity) or 0) >= 1
    assert (_value(metrics, "slackwater_findings", severity="stop") or 0) == (severity == "stop")
    assert _value(metrics, "slackwater_stream_readable") == 1


def test_what_cannot_be_read_is_left_out_and_said(tmp_path: Path) -> None:
    make_home(tmp_path)
    metrics, _ = _metrics(tmp_path)
    metrics.state(STREAM, "running")
    (tmp_path / ".slackwater" / "ledger.db").write_bytes(b"no database at all, and long enough to be seen as none")

    assert _value(metrics, "slackwater_stream_readable") == 0
    assert _value(metrics, "slackwater_mark_batch_id", mark="planned") is None
    assert _value(metrics, "slackwater_batches_total") == 0


def _kafka(left: int, *, more: BatchSource | None = None) -> BatchRecord:
    """The newest batch of a home with a Kafka source, and of its second source."""
    batch = batch_record(HomeSpec(source="kafka"), 5)
    (source,) = batch.sources
    latest = json.dumps({"clicks": {"0": 360, "1": 240 + left}})
    source = source._replace(description="KafkaV2[Subscribe[clicks]]", latest=latest)
    return batch._replace(sources=(source, *filter(None, [more])))


FILES = BatchSource("FileStreamSource[file:/no/such/folder]", None, '{"logOffset":1}', None, 1)
TABLE = BatchSource("DeltaSource[file:/table]", None, '{"sourceVersion":1,"reservoirVersion":1,"index":-1}', None, 1)


@pytest.mark.parametrize(
    ("spec", "newest", "state", "seconds"),
    [
        (HomeSpec(), _kafka(0), "running", 0),
        (HomeSpec(), _kafka(3), "running", HOUR_S),
        (HomeSpec(planned=6), _kafka(0), "running", HOUR_S),
        (HomeSpec(), _kafka(0), "waiting", HOUR_S),
        (HomeSpec(), _kafka(0), "draining", 0),
        (HomeSpec(), _kafka(0), "finished", HOUR_S),
        (HomeSpec(), _kafka(0), "stopped", HOUR_S),
        (HomeSpec(), _kafka(0), "interrupted", HOUR_S),
        (HomeSpec(), _kafka(0), "failed", HOUR_S),
        (HomeSpec(), _kafka(0, more=FILES), "running", None),
        (HomeSpec(), _kafka(0, more=TABLE), "running", None),
    ],
    ids=[
        *("caught up", "behind", "a batch hangs", "waits", "drains", "finished", "stopped", "interrupted", "failed"),
        *("files unknown", "a table"),
    ],
)
def test_only_a_stream_that_is_known_to_have_read_all_has_no_lag(
    tmp_path: Path, spec: HomeSpec, newest: BatchRecord, state: str, seconds: float | None
) -> None:
    # The lag that is served an hour after the stream was last seen without backlog.
    home = make_home(tmp_path, replace(spec, source="kafka", reported=(0, 1, 2, 3, 4)))
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        ledger.record_batch(newest)
    times = iter([0.0])
    metrics = RunMetrics(Silent(), load(home=str(home)), lambda: next(times, HOUR_S))
    metrics.state(STREAM, "running")
    metrics.state(STREAM, state)
    assert _value(metrics, "slackwater_lag_seconds") == seconds


def test_a_batch_is_no_end_of_the_backlog_where_another_source_cannot_be_counted() -> None:
    assert has_read_all(_kafka(0))
    assert not has_read_all(_kafka(3))
    assert not has_read_all(_kafka(0, more=FILES))
    assert not has_read_all(_kafka(0, more=TABLE))


def test_a_port_in_use_is_an_error_before_anything_starts(slackwater: Slackwater, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = slackwater("run", "pipeline.py", "--metrics-port", str(taken.getsockname()[1]))

    assert done.code == 9
    assert "metrics-port" in done.err
    assert list(tmp_path.glob(".slackwater")) == []


@pytest.mark.parametrize("port", ["-1", "65536", "http", ""])
def test_a_port_that_is_none_is_refused(slackwater: Slackwater, port: str) -> None:
    assert slackwater("run", "pipeline.py", "--metrics-port", port).code == 2


def test_alerts_and_dashboard_use_metrics_that_are_served() -> None:
    series = {metric.name for metric in METRICS.values()}
    series |= {f"{metric.name}_bucket" for metric in METRICS.values() if metric.kind == "histogram"}
    rules = [
        rule for group in yaml.safe_load((EXAMPLES / "alerts.yml").read_text())["groups"] for rule in group["rules"]
    ]
    panels = json.loads((EXAMPLES / "dashboard.json").read_text())["panels"]
    used = [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]

    assert {name for expression in used for name in OURS.findall(expression)} <= series
    # A counter alone only grows: its rate or its increase is what can be judged.
    counters = [metric.name for metric in METRICS.values() if metric.kind == "counter"]
    for expression in used:
        for name in counters:
            assert expression.count(name) == len(re.findall(rf"(?:rate|increase)\({name}", expression)), expression
    shown = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    missing = {"slackwater_batches_total", "slackwater_stream_readable", "slackwater_last_batch_timestamp_seconds",
               "slackwater_watermark_timestamp_seconds"}  # fmt: skip
    assert {name for name in {metric.name for metric in METRICS.values()} if name not in shown} == missing


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1", 200), ("localhost:9", 200), ("[::1]:9", 200), ("rebound.example", 421), ("", 421)],
)
def test_the_page_answers_requests_to_this_machine_only(tmp_path: Path, host: str, status: int) -> None:
    """A web site whose name leads to this machine is another one than the user's."""
    metrics, _ = _metrics(tmp_path)

    with served(metrics, lambda: (True, ""), "127.0.0.1", 0) as address:
        connection = HTTPConnection(address.split("/")[2], timeout=10)
        connection.request("GET", "/metrics", headers={"Host": host})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()

    assert answer.status == status
    assert ("slackwater" in body) == (status == 200)
