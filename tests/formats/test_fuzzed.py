"""What a coverage-guided fuzzer found in the decoders: each must be read or refused, never raise anything else."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from slackwater.checkpoint.state.records import ByteView
from slackwater.checkpoint.state.unsafe_row import read_rows, whole_rows
from slackwater.core.errors import FormatError
from slackwater.core.state import AtomicType, Field, StructType

ROW_WITH_LONG_INTERVAL = base64.b64decode(
    "G/4BSwAAAAAAAAAAAAAACEACAAAAAAAAADAAAAAwAAAAGAAAAABgAADw8PDwAAAgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABgA"
    "AAAYAAAAANTlFNcNBgBrMQAAAAAAAP8AAAAAAP////////8="
)


def test_an_interval_longer_than_arrow_counts() -> None:
    micros = (2**62).to_bytes(8, "little")
    row = bytes(8) + (16 << 0 | 16 << 32).to_bytes(8, "little") + bytes(8) + micros
    view = ByteView.of(row)
    rows = whole_rows(view, np.array([0], np.int64), np.array([len(row)], np.int64))
    with pytest.raises(FormatError, match="interval too long"):
        read_rows(rows, StructType((Field("i", AtomicType("interval")),)))


def test_the_row_that_was_found() -> None:
    view = ByteView.of(ROW_WITH_LONG_INTERVAL)
    rows = whole_rows(view, np.array([0], np.int64), np.array([view.length], np.int64))
    fields = [Field(str(index), AtomicType("interval")) for index in range(8)]
    with pytest.raises(FormatError):
        read_rows(rows, StructType(tuple(fields)))
