"""What a query's logical plan says about its state: the facts a rebuild depends on.

Recorded in the ledger when a generation first runs, and taken anew from the upgraded code before a replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class QueryProfile:
    """Stateful operators (names of Spark's logical nodes), watermark delays and window lengths, all in milliseconds.

    ``retention_ms`` is how far behind the watermark a row can lie and still matter for output to come; ``None`` where
    that cannot be told from the plan, and then only a replay from batch 0 is exact.
    ``sources`` are descriptions of the streaming sources in the order of the offset lines.
    """

    operators: tuple[str, ...]
    watermark_delays_ms: tuple[int, ...]
    windows_ms: tuple[int, ...]
    retention_ms: int | None
    sources: tuple[str, ...]

    @property
    def stateful(self) -> bool:
        """Whether the query keeps any state."""
        return bool(self.operators)

    def as_json(self) -> dict[str, Any]:
        """The form the ledger keeps."""
        return {
            "operators": list(self.operators),
            "watermark_delays_ms": list(self.watermark_delays_ms),
            "windows_ms": list(self.windows_ms),
            "retention_ms": self.retention_ms,
            "sources": list(self.sources),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> QueryProfile:
        """The profile the ledger kept."""
        return cls(
            operators=tuple(value["operators"]),
            watermark_delays_ms=tuple(value["watermark_delays_ms"]),
            windows_ms=tuple(value["windows_ms"]),
            retention_ms=value["retention_ms"],
            sources=tuple(value["sources"]),
        )
