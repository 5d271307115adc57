"""Edits of addresses in logs, as a move or a copy leaves them."""

from __future__ import annotations

from tests.doctor.cases import Case, both, nothing, output_in_place
from tests.doctor.rewriting import replace

OLD = "sink/_spark_metadata/6"

CASES = [
    Case("the output was moved", "SW-MOVE-003", nothing, with_sink=True, says=("/data/streams/", "8 files")),
    Case(
        "the output was moved, and the stream has continued",
        "SW-MOVE-003",
        both(output_in_place, replace(OLD, "/sink/part", "/elsewhere/part")),
        with_sink=True,
        says=("1 files", "/elsewhere"),
    ),
    Case(
        "the host of the address changed",
        "SW-MOVE-003",
        both(output_in_place, replace(OLD, "file:///", "file://localhost/")),
        with_sink=True,
        says=("file://localhost/",),
    ),
    Case("the output is where its log says", "SW-MOVE-003", output_in_place, with_sink=True, fires=False),
]
