"""CRC-32C of each row (``stateStore.rowChecksum.enabled``, 4.2 and later): before the value or a deleted key."""

from __future__ import annotations

import numpy as np

from slackwater.errors import FormatError
from slackwater.formats.byte_view import ByteView, Positions
from slackwater.formats.crc32c import crc32c_rows
from slackwater.formats.state_records import DELETED, Records

CHECKSUM_BYTES = 4


def without_delete_checksums(records: Records) -> Records:
    """The records with deleted keys as they were put, without their sum. Raises ``FormatError`` where it is wrong."""
    deletes = records.value_lengths == DELETED
    if not deletes.any():
        return records
    if (records.key_lengths[deletes] < CHECKSUM_BYTES).any():
        raise FormatError("torn", "a deleted key without a checksum", expected="4 bytes", found="fewer")
    cut = np.where(deletes, CHECKSUM_BYTES, 0)
    plain = Records(
        records.view,
        records.key_starts + cut,
        records.key_lengths - cut,
        records.value_starts,
        records.value_lengths,
        records.merges,
    )
    deleted = plain.take(deletes)
    found = crc32c_rows(records.view.bytes, deleted.key_starts, deleted.key_lengths)
    expected = records.view.integers(deleted.key_starts - CHECKSUM_BYTES, "<u4")
    require_equal(found.astype(np.int64), expected, "deleted keys")
    return plain


def require_row_checksums(
    view: ByteView,
    keys: tuple[Positions, Positions],
    values: tuple[Positions, Positions],
    expected: Positions,
) -> None:
    """Each sum covers the key as it is stored and then the value. Raises ``FormatError`` (``checksum``)."""
    of_keys = crc32c_rows(view.bytes, *keys)
    require_equal(crc32c_rows(view.bytes, *values, of_keys).astype(np.int64), expected, "rows")


def require_equal(found: Positions, expected: Positions, what: str) -> None:
    """Raise ``FormatError`` (``checksum``) where a sum differs."""
    wrong = int((found != expected).sum())
    if wrong:
        raise FormatError(
            "checksum",
            f"{what} differ from their checksums",
            expected="equal sums",
            found=f"{wrong} of {len(found)} {what}",
        )
