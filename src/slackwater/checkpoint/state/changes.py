"""Files of state that are not whole: their records, and the lineage that those of format 2 start with."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.checkpoint.integrity import read_checked
from slackwater.checkpoint.limited_store import LimitedStore
from slackwater.checkpoint.listing import Listing
from slackwater.checkpoint.state.inventory import Lineage, state_file
from slackwater.core.errors import FormatError
from slackwater.core.state import StateFile, StateFileKind
from slackwater.formats.changelog import decompressed_records, parse_changelog_header
from slackwater.formats.codecs import decompress


@dataclass(frozen=True, slots=True)
class ChangeFiles:
    """Reads the files through one listing."""

    store: LimitedStore
    listing: Listing

    def lineage(self, path: str) -> Lineage | None:
        """The lineage of a changelog; ``None`` where it cannot be read, or the file differs from its checksum.

        Raises ``FormatError`` where it is that of another version.
        """
        try:
            checked = read_checked(self.store, self.listing, path, thorough=False)
            if not checked.is_sound:
                return None
            lineage = parse_changelog_header(decompress(checked.data, budget=self.store.state_budget()))[1]
        except (FormatError, OSError):
            return None
        _require_own(lineage, state_file(path.rpartition("/")[2]), path)
        return lineage

    def require_records(self, data: bytes, file: StateFile) -> None:
        """Decompress a file, find its records, and compare its lineage with its name. Raises ``FormatError``."""
        is_changelog = file.kind is StateFileKind.CHANGELOG
        _, changelog = decompressed_records(data, is_changelog=is_changelog, budget=self.store.state_budget())
        if changelog is not None:
            _require_own(changelog.lineage, file)


def _require_own(lineage: Lineage, file: StateFile, where: str | None = None) -> None:
    before = max((version for version, _ in lineage), default=None)
    if before is not None and before != file.version - 1:
        # RocksDB.scala: the lineage ends with the version before the one that is written.
        raise FormatError(
            "foreign",
            "the changes are those of another version",
            where=where,
            expected=f"a lineage up to version {file.version - 1}",
            found=f"version {before}",
        )
