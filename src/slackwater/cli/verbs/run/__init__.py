"""``slackwater run``: runs the streams of a pipeline."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.live import Live
from rich.table import Table

from slackwater.cli.common.console import err, parse_conf, parse_seconds, prepare, say, timestamp, user_traceback
from slackwater.cli.verbs.run.supervision import Supervised, is_repeated
from slackwater.core.errors import EnvironmentMissing, SlackwaterError, UsageError
from slackwater.core.escaping import one_line
from slackwater.core.masking import mask
from slackwater.core.records import BatchRecord
from slackwater.core.settings import Settings
from slackwater.diagnose.checks.common.check import lag_of
from slackwater.ledger.workspace import open_workspace
from slackwater.operations.check_home import check_home
from slackwater.runtime.loader import is_application, load, locate, refuse_other_program
from slackwater.runtime.session import given_to, require_spark, session_options

if TYPE_CHECKING:
    from slackwater.runtime.run.runner import RunDisplay
    from slackwater.runtime.run.stream_run import StreamOutcome


_APPLICATION = "slackwater.runtime.application.running"
FAILED = 7
INTERRUPTED = 130


def _ended(
    reference: str,
    settings: Settings,
    display: RunDisplay,
    streams: Sequence[str],
    *,
    until_caught_up: bool,
    seconds: float | None,
    master: str | None,
    spark: Mapping[str, str],
    accepted: frozenset[str],
) -> tuple[tuple[StreamOutcome, ...], int | None]:
    """Runs to the end, or for ``seconds``. Returns the outcomes and an application's exit code. Raises as
    ``runtime.run.runner.run``.
    """
    require_spark()
    if not is_application(reference):
        loaded = load(reference)
        from slackwater.runtime.run import runner  # noqa: PLC0415 - heavy, and most mistakes are in the file

        session = session_options(loaded, settings, master, spark)
        request = runner.RunRequest(
            loaded, session, tuple(streams), until_caught_up, seconds, settings.restarts, accepted
        )
        with open_workspace(settings, create=True) as workspace:
            check_home(workspace, display.say)
            return runner.run(request, workspace.home, workspace.ledger, display), None
    if streams or until_caught_up:
        raise UsageError(
            "application-options",
            "An application decides which queries it starts and when they end",
            expected="neither --stream nor --until-caught-up",
            where=reference,
            hint="give the application its own arguments after --",
        )
    running = import_module(_APPLICATION)
    refuse_other_program(locate(reference)[0])
    given = given_to(settings, master, spark)
    with open_workspace(settings, create=True) as workspace:
        check_home(workspace, display.say)
        home, ledger = workspace.home, workspace.ledger
        ended: tuple[tuple[StreamOutcome, ...], int] = running.run_application(
            reference, home, ledger, display, given, seconds=seconds, accepted=accepted
        )
    return ended


class PlainDisplay:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""

    def say(self, text: str) -> None:
        say(f"{datetime.now(UTC):%H:%M:%S} {one_line(text)}")

    def state(self, stream: str, state: str) -> None:
        self.say(f"{stream} {state}")

    def batch(self, batch: BatchRecord) -> None:
        cells = _cells(batch)
        self.say(
            f"{batch.stream} batch={cells['batch']} rows={batch.input_rows} rows/s={cells['rows/s']} "
            f"lag={cells['lag']} state={cells['state rows']} watermark={cells['watermark']}"
        )

    def idle(self, stream: str) -> None:
        """Nothing: the batch that is shown stays."""

    def restarted(self, stream: str) -> None:
        """Nothing: a message has the reason."""


class LiveDisplay(PlainDisplay):
    """A table that is updated in place. The recorder's thread reports batches, the runner's states, and they must not
    draw at the same time.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._console = err()
        self._states: dict[str, str] = {}
        self._batches: dict[str, BatchRecord] = {}
        self._live = Live(console=self._console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._console.print(text)

    def state(self, stream: str, state: str) -> None:
        with self._one_at_a_time:
            self._states[stream] = state
            self._live.update(self._table())

    def batch(self, batch: BatchRecord) -> None:
        with self._one_at_a_time:
            self._batches[batch.stream] = batch
            self._live.update(self._table())

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("stream", "state", "batch", "rows/s", "lag", "watermark", "state rows"):
            table.add_column(column, justify="left" if column in ("stream", "state") else "right")
        for stream, state in self._states.items():
            batch = self._batches.get(stream)
            cells = list(_cells(batch).values()) if batch else ["-"] * 5
            table.add_row(stream, state, *cells)
        return table


def _cells(batch: BatchRecord) -> dict[str, str]:
    seconds = batch.durations_ms.get("triggerExecution", 0) / 1000
    lag = lag_of(batch)
    return {
        "batch": str(batch.batch_id),
        "rows/s": f"{batch.input_rows / seconds:,.0f}" if seconds else "-",
        "lag": "unknown" if lag is None else f"{lag:,}",
        "watermark": timestamp(batch.watermark_ms),
        "state rows": f"{batch.state_rows:,}",
    }


def run(
    *,
    pipeline: str,
    streams: list[str] | None,
    until_caught_up: bool,
    duration: str | None,
    accepted: list[str] | None,
    master: str | None,
    conf: list[str] | None,
    metrics_port: int | None,
    metrics_host: str,
    hold: str | None,
    home: str | None,
    debug: bool,
) -> int:
    settings = prepare(home, logging=True, debug=debug)
    seconds = parse_seconds(duration) if duration is not None else None
    spark = parse_conf(conf)
    held = Path(hold) if hold is not None else None
    if held is not None:
        # What cannot be written is found before a stream runs, and the reason of an earlier start goes.
        held.write_bytes(b"")
    with LiveDisplay() if sys.stderr.isatty() else PlainDisplay() as display:
        supervised = Supervised(display)
        with _metered(supervised, settings, metrics_host, metrics_port) as to:
            try:
                outcomes, code = _ended(
                    pipeline,
                    settings,
                    to,
                    streams or (),
                    until_caught_up=until_caught_up,
                    seconds=seconds,
                    master=master,
                    spark=spark,
                    accepted=frozenset(accepted or ()),
                )
            except SlackwaterError as error:
                if held is None or not is_repeated(error):
                    raise
                return supervised.hold(error, held)
    console = err()
    for outcome in outcomes:
        of_the_query = outcome.failure.traceback if outcome.failure is not None else None
        if debug and (trace := user_traceback(outcome.error) if outcome.error is not None else of_the_query):
            console.print(mask(trace))
        place = f" at {outcome.failure.place}" if outcome.failure is not None and outcome.failure.place else ""
        reason = f": {outcome.reason}" if outcome.reason else ""
        console.print(f"{outcome.stream}: {outcome.end}{reason}{place}")
    ends = {outcome.end for outcome in outcomes}
    if "failed" in ends:
        return code or FAILED
    if code is not None:
        # An application may stop its own queries.
        return code
    return INTERRUPTED if "interrupted" in ends else 0


@contextmanager
def _metered(display: Supervised, settings: Settings, host: str, port: int | None) -> Iterator[RunDisplay]:
    if port is None:
        yield display
        return
    try:
        from slackwater.cli.verbs.run.metrics import RunMetrics, served  # noqa: PLC0415 - prometheus-client is an extra
    except ModuleNotFoundError as error:
        raise EnvironmentMissing(
            "extra-missing", "Metrics need prometheus-client", hint="pip install prometheus-client"
        ) from error
    metrics = RunMetrics(display, settings)
    with served(metrics, display.readiness, host, port) as address:
        display.say(f"metrics at {address}")
        yield metrics
