"""Serves a run's metrics to Prometheus: ``slackwater run --metrics-port``.

Events are counted as they happen. Marks, lag, watermark and findings are read on request; requests within
``READ_AGAIN_S`` share a reading.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from slackwater.cli.common.stream_status import StreamStatus, every_source_counts, has_read_all, stream_status
from slackwater.core.errors import EnvironmentMissing, SlackwaterError
from slackwater.core.records import BatchRecord
from slackwater.core.settings import Settings
from slackwater.ledger.workspace import open_workspace

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from slackwater.runtime.run.runner import RunDisplay


STATES = ("running", "draining", "waiting", "finished", "stopped", "interrupted", "failed", "not-started")
"""Values of ``slackwater_stream_state``; ``waiting`` is for a restart after a failure."""


READ_AGAIN_S = 5.0
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
STREAM = ("pipeline", "stream")
Clock = Callable[[], float]
"""Seconds since 1970."""
Readiness = Callable[[], tuple[bool, str]]
"""Whether the run is ready, and the states of its streams as text."""
Values = Mapping[tuple[str, ...], float | None]
"""A stream's values of a metric by its own labels; ``None``: unknown."""
_ASKS_NO_SOURCE = frozenset({"waiting", "finished", "stopped", "interrupted", "failed", "not-started"})
"""States in which no query asks the sources for new data."""
Reading = Mapping[str, StreamStatus | None]
"""Status by the stream's full name; ``None`` if it cannot be read."""


@dataclass(frozen=True, slots=True)
class MetricName:
    """``key`` is its name in the code; ``labels`` are in addition to pipeline and stream."""

    key: str
    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


BATCH_SECONDS = MetricName(
    "batch_seconds",
    "slackwater_batch_duration_seconds",
    "histogram",
    "Duration of batches, from trigger to commit (triggerExecution of Spark's progress)",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
)

COUNTED = (
    MetricName("batches", "slackwater_batches_total", "counter", "Batches that this run has finished"),
    MetricName("input_rows", "slackwater_input_rows_total", "counter", "Rows that these batches have read"),
    MetricName(
        "output_rows",
        "slackwater_output_rows_total",
        "counter",
        "Rows that these batches have written, of sinks that report it",
    ),
    MetricName(
        "late_rows",
        "slackwater_late_rows_total",
        "counter",
        "Rows that these batches have dropped because they were later than the watermark",
    ),
    MetricName(
        "restarts", "slackwater_restarts_total", "counter", "Restarts of the query after transient failures in this run"
    ),
    BATCH_SECONDS,
    MetricName("state", "slackwater_stream_state", "gauge", "1 for the state that the stream is in", ("state",)),
)

READ_AT_REQUEST = (
    MetricName("readable", "slackwater_stream_readable", "gauge", "1 if ledger, checkpoint and output can be read"),
    MetricName(
        "marks",
        "slackwater_mark_batch_id",
        "gauge",
        "Newest batch that is planned, committed, has state that can be loaded, or is written; -1 for none",
        ("mark",),
    ),
    MetricName("lag_rows", "slackwater_lag_rows", "gauge", "Rows in the sources after the newest batch, where known"),
    MetricName("lag_files", "slackwater_lag_files", "gauge", "Files in the sources that no batch has read"),
    MetricName("lag_bytes", "slackwater_lag_bytes", "gauge", "Bytes of these files"),
    MetricName(
        "lag_seconds",
        "slackwater_lag_seconds",
        "gauge",
        "Time since the stream had read all that its sources have, or since this run started; 0 if it has",
    ),
    MetricName(
        "watermark", "slackwater_watermark_timestamp_seconds", "gauge", "Watermark of the next batch, as a Unix time"
    ),
    MetricName("watermark_age", "slackwater_watermark_age_seconds", "gauge", "Time from that watermark to now"),
    MetricName("state_rows", "slackwater_state_rows", "gauge", "Rows in the state of all operators"),
    MetricName("state_bytes", "slackwater_state_bytes", "gauge", "Memory that the state stores use (memoryUsedBytes)"),
    MetricName(
        "last_batch",
        "slackwater_last_batch_timestamp_seconds",
        "gauge",
        "When this run finished its newest batch, as a Unix time",
    ),
    MetricName("findings", "slackwater_findings", "gauge", "Findings of the number line, by severity", ("severity",)),
)

METRICS = {metric.key: metric for metric in (*COUNTED, *READ_AT_REQUEST)}


class RunMetrics:
    def __init__(self, display: RunDisplay, settings: Settings, clock: Clock = time.time) -> None:
        self.registry = CollectorRegistry()
        self._display = display
        self._counters = {
            name: Counter(metric.name.removesuffix("_total"), metric.help, STREAM, registry=self.registry)
            for name, metric in METRICS.items()
            if metric.kind == "counter"
        }
        self._seconds = Histogram(
            BATCH_SECONDS.name, BATCH_SECONDS.help, STREAM, registry=self.registry, buckets=BATCH_SECONDS.buckets
        )
        state = METRICS["state"]
        self._state = Gauge(state.name, state.help, (*STREAM, "state"), registry=self.registry)
        self._readings = StatusCollector(settings, clock)
        self.registry.register(self._readings)

    def say(self, text: str) -> None:
        self._display.say(text)

    def state(self, stream: str, state: str) -> None:
        pipeline, name = stream.split("/", 1)
        for known in STATES:
            self._state.labels(pipeline, name, known).set(known == state)
        for counter in self._counters.values():
            # A counter is there, with 0, before the first event: an increase from 0 is seen as one.
            counter.labels(pipeline, name)
        self._readings.is_in(stream, state)
        self._display.state(stream, state)

    def batch(self, batch: BatchRecord) -> None:
        pipeline, name = batch.stream.split("/", 1)
        counted = {
            "batches": 1,
            "input_rows": batch.input_rows,
            "output_rows": batch.output_rows or 0,
            "late_rows": batch.late_rows,
        }
        for counter, amount in counted.items():
            self._counters[counter].labels(pipeline, name).inc(amount)
        self._seconds.labels(pipeline, name).observe(batch.durations_ms.get("triggerExecution", 0) / 1000)
        self._readings.finished(batch)
        self._display.batch(batch)

    def idle(self, stream: str) -> None:
        self._display.idle(stream)

    def restarted(self, stream: str) -> None:
        self._counters["restarts"].labels(*stream.split("/", 1)).inc()
        self._display.restarted(stream)


@dataclass(slots=True)
class _StreamSeen:
    """A stream's state as this process has seen it; times in seconds since 1970."""

    no_backlog_at: float
    batch_at: float | None = None
    state: str = "running"


class StatusCollector(Collector):
    """Reads the run's streams when Prometheus asks."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._one_at_a_time = threading.Lock()
        self._seen: dict[str, _StreamSeen] = {}
        self._read_at = -READ_AGAIN_S
        self._read: Reading = {}

    def is_in(self, stream: str, state: str) -> None:
        """Sets a stream's state; the stream is read from now on."""
        self._seen.setdefault(stream, _StreamSeen(self._clock())).state = state

    def finished(self, batch: BatchRecord) -> None:
        """A batch that left no rows in any source ends the backlog."""
        seen = self._seen.setdefault(batch.stream, _StreamSeen(self._clock()))
        seen.batch_at = self._clock()
        if has_read_all(batch):
            seen.no_backlog_at = seen.batch_at

    def describe(self) -> Iterable[Metric]:
        """Nothing: a registry would otherwise read all streams on registration."""
        return ()

    def collect(self) -> Iterator[Metric]:
        with self._one_at_a_time:
            if time.monotonic() - self._read_at >= READ_AGAIN_S:
                self._read = self._statuses()
                self._read_at = time.monotonic()
            reading = self._read
        values = {name: _values(status, self._seen[name], self._clock()) for name, status in reading.items()}
        for metric in READ_AT_REQUEST:
            family = GaugeMetricFamily(metric.name, metric.help, labels=(*STREAM, *metric.labels))
            for stream, known in values.items():
                for labels, value in known.get(metric.key, {}).items():
                    if value is not None:
                        family.add_metric((*stream.split("/", 1), *labels), value)
            yield family

    def _statuses(self) -> Reading:
        found: dict[str, StreamStatus | None] = dict.fromkeys(self._seen)
        # What cannot be read is shown: ``slackwater_stream_readable`` is 0.
        with suppress(SlackwaterError), open_workspace(self._settings) as workspace:
            for name in found:
                with suppress(SlackwaterError):
                    found[name] = stream_status(workspace, workspace.ledger.stream(name))
        return found


def _values(status: StreamStatus | None, seen: _StreamSeen, now: float) -> Mapping[str, Values]:
    """The values of metrics that are known, by key."""
    values: dict[str, float | None] = {"readable": float(status is not None), "last_batch": seen.batch_at}
    by_label: dict[str, Values] = {}
    if status is not None:
        lag, batch, watermark_s = status.lag, status.batch, status.watermark_ms / 1000
        if batch is not None and lag.unknown is None and every_source_counts(batch):
            # The newest batch's remaining rows are current only while the query asks its sources: not while a planned
            # batch is uncommitted, and not after its end.
            if not (lag.rows or lag.files or status.rerun or seen.state in _ASKS_NO_SOURCE):
                seen.no_backlog_at = now
            values["lag_seconds"] = max(now - seen.no_backlog_at, 0.0)
        values |= {
            "lag_rows": lag.rows,
            "lag_files": lag.files,
            "lag_bytes": lag.bytes,
            "watermark": watermark_s or None,
            "watermark_age": now - watermark_s if watermark_s else None,
            "state_rows": batch.state_rows if batch else None,
            "state_bytes": batch.state_bytes if batch else None,
        }
        severities = [str(finding.severity) for finding in status.findings]
        by_label = {
            "marks": {
                (name,): getattr(status.snapshot.marks, name) for name in ("planned", "committed", "state", "written")
            },
            "findings": {(severity,): severities.count(severity) for severity in ("info", "warning", "stop")},
        }
    plain: dict[str, Values] = {key: {(): value} for key, value in values.items()}
    return plain | by_label


def _pages(metrics: WSGIApplication, readiness: Readiness, *, only_local: bool) -> WSGIApplication:
    """``/live``, ``/ready``, and the metrics at any other path. ``only_local``: for names of this machine only, as a
    web site can point its own name here.
    """

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        name = re.sub(r":\d*$", "", environ.get("HTTP_HOST", "")).strip("[]").lower()
        path = environ.get("PATH_INFO")
        if only_local and name not in LOCAL_HOSTS:
            status, text = "421 Misdirected Request", "the metrics page is only for requests to this machine"
        elif path == "/live":
            status, text = "200 OK", "live"
        elif path == "/ready":
            ready, text = readiness()
            status = "200 OK" if ready else "503 Service Unavailable"
        else:
            return metrics(environ, start_response)
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{text}\n".encode()]

    return answer


@contextmanager
def served(metrics: RunMetrics, readiness: Readiness, host: str, port: int) -> Iterator[str]:
    """Serve the metrics and yield the page's address. ``port`` 0: a free port. Raises EnvironmentMissing if the port
    cannot be opened.
    """
    try:
        server, thread = start_http_server(port, host, metrics.registry)
        server.set_app(_pages(make_wsgi_app(metrics.registry), readiness, only_local=host in LOCAL_HOSTS))
    except (OSError, UnicodeError) as error:  # UnicodeError: a host with a part of more than 63 characters
        raise EnvironmentMissing(
            "metrics-port",
            "The port for metrics cannot be opened",
            where=f"{host}:{port}",
            found=getattr(error, "strerror", None) or str(error),
            hint="give a free port, or --metrics-port 0",
        ) from error
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
