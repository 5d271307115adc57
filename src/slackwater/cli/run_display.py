"""The display of a run: one live line for each stream on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from slackwater.app.lag import lag_of
from slackwater.model.records import BatchRecord
from slackwater.model.units import iso_text


class PlainDisplay:
    """One line for each event, on stderr."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close."""

    def say(self, text: str) -> None:
        """A message."""
        self._write(text)

    def state(self, stream: str, state: str) -> None:
        """A stream changed its state."""
        self._write(f"{stream} {state}")

    def batch(self, batch: BatchRecord) -> None:
        """A batch was finished."""
        cells = _cells(batch)
        self._write(
            f"{batch.stream} batch={cells['batch']} rows={batch.input_rows} rows/s={cells['rows/s']} "
            f"lag={cells['lag']} watermark={cells['watermark']} state={cells['state rows']}"
        )

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")
        sys.stderr.flush()


class LiveDisplay:
    """A table that is updated in place.

    Batches come from the recorder's thread, states from the runner's: only one thread may draw at a time.
    """

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._console = Console(stderr=True, highlight=False)
        self._states: dict[str, str] = {}
        self._batches: dict[str, BatchRecord] = {}
        self._live = Live(console=self._console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """A message, above the table."""
        self._console.print(text, markup=False)

    def state(self, stream: str, state: str) -> None:
        """A stream changed its state."""
        with self._one_at_a_time:
            self._states[stream] = state
            self._live.update(self._table())

    def batch(self, batch: BatchRecord) -> None:
        """A batch was finished."""
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


Display = PlainDisplay | LiveDisplay


def make_display(*, live: bool) -> Display:
    """The display that suits stderr."""
    return LiveDisplay() if live else PlainDisplay()


def _cells(batch: BatchRecord) -> dict[str, str]:
    seconds = batch.durations_ms.get("triggerExecution", 0) / 1000
    lag = lag_of(batch)
    return {
        "batch": str(batch.batch_id),
        "rows/s": f"{batch.input_rows / seconds:,.0f}" if seconds else "-",
        "lag": "-" if lag is None else f"{lag:,}",
        "watermark": _watermark(batch.watermark_ms),
        "state rows": f"{batch.state_rows:,}",
    }


def _watermark(watermark_ms: int | None) -> str:
    if not watermark_ms:
        return "-"
    return iso_text(watermark_ms, "seconds")
