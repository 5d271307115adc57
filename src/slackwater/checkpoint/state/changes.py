"""Files of state that are not whole: their records, and the lineage that those of format 2 start with."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.checkpoint.limited_store import LimitedStore
from slackwater.checkpoint.state.inventory import Lineage
from slackwater.core.errors import FormatError
from slackwater.core.state import StateFile, StateFileKind
from slackwater.formats.changelog import LONGEST_HEADER, decompressed_records, parse_changelog_header
from slackwater.formats.codecs import decompress_start


@dataclass(frozen=True, slots=True)
class ChangeFiles:
    """Parses such files, within the limits of a store."""

    store: LimitedStore

    def lineage(self, data: bytes, file: StateFile) -> Lineage:
        """The lineage of a changelog, of which no more is decompressed.

        Raises ``FormatError``, also where it is the lineage of another version.
        """
        start = decompress_start(data, LONGEST_HEADER, self.store.state_budget())
        lineage = parse_changelog_header(start)[1]
        _require_own(lineage, file)
        return lineage

    def require_records(self, data: bytes, file: StateFile) -> None:
        """Decompress a file, find its records, and compare its lineage with its name. Raises ``FormatError``."""
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
