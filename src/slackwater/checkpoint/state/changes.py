from __future__ import annotations

from dataclasses import dataclass

from slackwater.checkpoint.listing import LimitedStore
from slackwater.checkpoint.state.inventory import Lineage
from slackwater.core.checkpoint import StateFile, StateFileKind
from slackwater.core.errors import FormatError
from slackwater.formats.changelog import LONGEST_HEADER, decompressed_records, parse_changelog_header
from slackwater.formats.codecs import decompress_start


@dataclass(frozen=True, slots=True)
class ChangeFiles:
    store: LimitedStore

    def lineage(self, data: bytes, file: StateFile) -> Lineage:
        """A changelog's lineage, without decompressing more.

        Raises ``FormatError``, also for another version's lineage.
        """
        start = decompress_start(data, LONGEST_HEADER, self.store.state_budget())
        lineage = parse_changelog_header(start)[1]
        _require_own(lineage, file)
        return lineage

    def require_records(self, data: bytes, file: StateFile) -> None:
        """Find the records, and compare lineage and name. Raises ``FormatError``."""
        is_changelog = file.kind is StateFileKind.CHANGELOG
        _, changelog = decompressed_records(data, is_changelog=is_changelog, budget=self.store.state_budget())
        if changelog is not None:
            _require_own(changelog.lineage, file)


def _require_own(lineage: Lineage, file: StateFile) -> None:
    before = max((version for version, _ in lineage), default=None)
    if before is not None and before != file.version - 1:
        # RocksDB.scala: the lineage ends with the version before the one that is written.
        raise FormatError(
            "foreign",
            "the changes are those of another version",
            expected=f"a lineage up to version {file.version - 1}",
            found=f"version {before}",
        )
