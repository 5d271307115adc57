"""Facts about a query's state in its logical plan, on which a rebuild depends.

Recorded when a generation first runs, and read from upgraded code before a replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

RowOrder = Literal["any"]


@dataclass(frozen=True, slots=True)
class QueryProfile:
    """Stateful operators (Spark's logical nodes), watermark delays and window lengths, in milliseconds.

    ``retention_ms`` is how far behind the watermark rows matter for later output; ``None``: unknown, and only a replay
    from batch 0 is exact. ``sources`` are in offset order, as are ``source_logs``, the numbers of their logs: a
    DataFrame read twice has two lines, but a single log (``MicroBatchExecution.logicalPlan``). ``rows_digest`` is a
    SHA-256 of everything that decides which rows with which event times reach the watermarks, in a plan of the
    optimiser of ``spark_version``: other releases make other plans. ``by_order`` names aggregates that depend on row
    order, such as ``first``. ``reads_tables``: a joined table reaches state. ``random`` names parts that differ at each
    computation, such as ``rand``. ``late_in_chain``: an operator returns rows that the next stateful operator drops as
    late. ``asks_for_batches``: Spark runs a batch without data when the watermark advances (``shouldRunAnotherBatch``
    of a stateful operator), also assumed if unknown. ``session_gap_ms`` is set if sessions with a constant gap are the
    only state, ``window_starts_ms`` if windows of equal length are: they start at this interval, aligned to the second
    number after the epoch.
    """

    operators: tuple[str, ...]
    watermark_delays_ms: tuple[int, ...]
    windows_ms: tuple[int, ...]
    retention_ms: int | None
    sources: tuple[str, ...]
    rows_digest: str | None = None
    source_logs: tuple[str, ...] = ()
    random: tuple[str, ...] = ()
    late_in_chain: bool = False
    by_order: tuple[str, ...] = ()
    reads_tables: bool = False
    asks_for_batches: bool = True
    session_gap_ms: int | None = None
    window_starts_ms: tuple[int, int] | None = None
    spark_version: str = ""

    @property
    def stateful(self) -> bool:
        return bool(self.operators)

    @property
    def logs_of_sources(self) -> Mapping[str, str]:
        return {str(position): log for position, log in enumerate(self.source_logs)}

    def as_json(self) -> dict[str, Any]:
        """The ledger's form; rare facts only if they hold."""
        rare: dict[str, Any] = {
            "random": list(self.random),
            "late_in_chain": self.late_in_chain,
            "by_order": list(self.by_order),
            "reads_tables": self.reads_tables,
        }
        return {
            "operators": list(self.operators),
            "watermark_delays_ms": list(self.watermark_delays_ms),
            "windows_ms": list(self.windows_ms),
            "retention_ms": self.retention_ms,
            "sources": list(self.sources),
            "rows_digest": self.rows_digest,
            "source_logs": list(self.source_logs),
            **{name: value for name, value in rare.items() if value},
            "asks_for_batches": self.asks_for_batches,
            "session_gap_ms": self.session_gap_ms,
            "window_starts_ms": None if self.window_starts_ms is None else list(self.window_starts_ms),
            "spark_version": self.spark_version,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> QueryProfile:
        starts = value.get("window_starts_ms")
        return cls(
            operators=tuple(value["operators"]),
            watermark_delays_ms=tuple(value["watermark_delays_ms"]),
            windows_ms=tuple(value["windows_ms"]),
            retention_ms=value["retention_ms"],
            sources=tuple(value["sources"]),
            rows_digest=value.get("rows_digest"),
            source_logs=tuple(value.get("source_logs", ())),
            random=tuple(value.get("random", ())),
            late_in_chain=bool(value.get("late_in_chain", False)),
            by_order=tuple(value.get("by_order", ())),
            reads_tables=bool(value.get("reads_tables", False)),
            asks_for_batches=bool(value.get("asks_for_batches", True)),
            session_gap_ms=value.get("session_gap_ms"),
            window_starts_ms=None if starts is None else (starts[0], starts[1]),
            spark_version=str(value.get("spark_version", "")),
        )


_NOT_REPRODUCIBLE = {
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark: the first row of a key wins, and the order of rows "
    "inside a batch is not fixed",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState: a function of the user's own",
    "FlatMapGroupsWithState": "flatMapGroupsWithState: a function of the user's own",
    "TransformWithState": "transformWithState: a function of the user's own",
    "TransformWithStateInPandas": "transformWithState: a function of the user's own",
    "TransformWithStateInPySpark": "transformWithState: a function of the user's own",
    "GlobalLimit": "limit: which rows come first is not fixed",
}
ARBITRARY = {name for name, reason in _NOT_REPRODUCIBLE.items() if reason.endswith("a function of the user's own")}
"""State that a replay of all batches recomputes if the function gives the same for any row order."""
_BY_ORDER = "an aggregate whose result depends on the order of rows, and their order inside a batch is not fixed"


def not_reproducible(profile: QueryProfile, row_order: RowOrder | None = None) -> tuple[str, str] | None:
    """A part that no replay recomputes exactly, and the reason."""
    if profile.random and profile.stateful:
        return ", ".join(profile.random), "its value is another one each time, and the state is made of it"
    names = [one for one in profile.operators if not (one in ARBITRARY and row_order == "any")]
    found = next(((one, _NOT_REPRODUCIBLE[one]) for one in names if one in _NOT_REPRODUCIBLE), None)
    if found is None and profile.by_order and row_order != "any":
        return ", ".join(profile.by_order), _BY_ORDER
    return found
