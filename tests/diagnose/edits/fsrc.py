"""Edits of the logs of file sources, and of the files that they list."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.diagnose.cases import Case, both, nothing, remove, write
from tests.diagnose.rewriting import copy, replace, reread, written_at

_PLANNED = both(reread("checkpoint/sources/0"), remove("checkpoint/commits/7"))
_HERE = reread("checkpoint/sources/0")
_READ_MS = 1704067270000
_DAY_MS = 24 * 60 * 60 * 1000
_HUGE = 10**17
_BACK_TO_5 = remove(*(f"checkpoint/{log}/{batch}" for log in ("offsets", "commits") for batch in (6, 7)))
_BACK_TO_6 = remove("checkpoint/offsets/7", "checkpoint/commits/7")


def _aged(name: str, days: int) -> Callable[[Path], None]:
    """A file so many days older than the newest one that was read."""
    return both(_HERE, written_at(f"input/{name}", _READ_MS - days * _DAY_MS))


def _output_of_files(folder: str, *names: str) -> Callable[[Path], None]:
    """An edit that makes the source's folder the output of a file sink, whose log lists files in ``folder``."""

    def edit(case: Path) -> None:
        place = folder or str(case / "input")
        fields = {"size": 1, "isDir": False, "modificationTime": 1, "blockReplication": 1, "blockSize": 1}
        lines = [json.dumps({"path": f"file://{place}/{name}", **fields, "action": "add"}) for name in names]
        write("input/_spark_metadata/0", "\n".join(("v1", *lines)))(case)

    return edit


CASES = [
    Case("the newest entry", "SW-FSRC-001", remove("checkpoint/sources/0/7"), says=("entry 7 of", "batch 7")),
    Case("an entry in a compacted one", "SW-FSRC-001", remove("checkpoint/sources/0/4"), fires=False),
    Case("nothing removed", "SW-FSRC-001", nothing, fires=False),
    Case(
        "an offset that no log reaches", "SW-FSRC-001",
        replace("checkpoint/offsets/7", '"logOffset":7', f'"logOffset":{_HUGE}'),
        says=(f"entries 8 to {_HUGE}",),
    ),
    Case(
        "two numbers that no log reaches", "SW-FSRC-002",
        both(write(f"checkpoint/sources/0/{_HUGE - 1}", ""), write(f"checkpoint/sources/0/{_HUGE}", "")),
        says=(f"entries 8 to {_HUGE - 2},",),
    ),
    Case(
        "gaps before and after the newest batch", "SW-FSRC-002",
        both(remove("checkpoint/sources/0/6"), *(write(f"checkpoint/sources/0/{number}", "") for number in (9, 10))),
        says=("entries 6, 8,",),
    ),
    Case("the newest compacted entry", "SW-FSRC-002", remove("checkpoint/sources/0/5.compact"), says=("entry 5",)),
    Case("an entry after it", "SW-FSRC-002", remove("checkpoint/sources/0/6"), says=("entry 6",)),
    Case("an older compacted entry", "SW-FSRC-002", remove("checkpoint/sources/0/2.compact"), fires=False),
    Case("older ones removed by Spark", "SW-FSRC-002", nothing, "retention_min_batches_2_filesink", fires=False),
    Case("an entry before a compacted one", "SW-FSRC-012", remove("checkpoint/sources/0/1"), says=("entry 1",)),
    Case(
        "a compacted one that no log reaches", "SW-FSRC-012", write(f"checkpoint/sources/0/{_HUGE}.compact", "v1"),
        says=(f"entries 8 to {_HUGE - 1} ",),
    ),
    Case("the oldest entry", "SW-FSRC-012", remove("checkpoint/sources/0/0"), fires=False),
    Case("an entry after all compacted ones", "SW-FSRC-012", remove("checkpoint/sources/0/6"), fires=False),
    Case(
        "a planned file", "SW-FSRC-003", both(_PLANNED, remove("input/in-007.json")), says=("in-007.json", "1 file ")
    ),
    Case("a file that was read", "SW-FSRC-003", both(_PLANNED, remove("input/in-006.json")), fires=False),
    Case("all planned files exist", "SW-FSRC-003", _PLANNED, fires=False),
    Case(
        "written again", "SW-FSRC-005", both(_HERE, written_at("input/in-007.json", _READ_MS + _DAY_MS)),
        says=("in-007.json", "2024-01-02"),
    ),
    Case("with the recorded times", "SW-FSRC-005", _HERE, fires=False),
    Case("not on this machine", "SW-FSRC-005", nothing, fires=False),
    Case(
        "eight days older", "SW-FSRC-006", _aged("late.json", 8),
        says=("touch", "late.json"),
    ),
    Case("six days old", "SW-FSRC-006", _aged("late.json", 6), fires=False),
    Case("not of its kind", "SW-FSRC-006", _aged("note.txt", 8), fires=False),
    Case(
        "a digit of a path", "SW-FSRC-013", replace("checkpoint/sources/0/3", "in-003.json", "in-008.json"),
        says=("sources/0/3 lists", "5.compact"),
    ),
    Case(
        "a copy of an older entry", "SW-FSRC-013", copy("checkpoint/sources/0/3", "checkpoint/sources/0/4"),
        says=("sources/0/4", "1 older entry"),
    ),
    Case(
        "a digit of a time in the newest compacted entry", "SW-FSRC-013",
        replace("checkpoint/sources/0/5.compact", "1704067200000", "1704067200001"),
        says=("sources/0/2.compact", "2 older entries"),
    ),
    Case(
        "an entry that no older one repeats", "SW-FSRC-013",
        replace("checkpoint/sources/0/6", "in-006.json", "in-008.json"), fires=False,
    ),
    Case("an empty entry, as some write in place of a lost one", "SW-FSRC-013",
         write("checkpoint/sources/0/3", "v1"), fires=False),
    Case("as Spark compacts them", "SW-FSRC-013", nothing, "retention_min_batches_2_filesink", fires=False),
    Case("two batches taken back", "SW-FSRC-011", _BACK_TO_5, says=("2 entries after entry 5", "batch 6")),
    Case("one entry more, as of a crash", "SW-FSRC-011", _BACK_TO_6, fires=False),
    Case(
        "two files", "SW-FSRC-009", both(_HERE, remove("input/in-002.json", "input/in-003.json")),
        says=("2 files", "in-003.json"),
    ),
    Case("a file of the planned batch", "SW-FSRC-009", both(_PLANNED, remove("input/in-007.json")), fires=False),
    Case("all files exist", "SW-FSRC-009", _HERE, fires=False),
    Case("not on this machine", "SW-FSRC-009", nothing, fires=False),
    Case(
        "files of the output elsewhere", "SW-FSRC-010", both(_HERE, _output_of_files("/data/old", "in-007.json")),
        says=("1 file ", "/data/old"),
    ),
    Case("the output where its log says", "SW-FSRC-010", both(_HERE, _output_of_files("", "in-007.json")), fires=False),
    Case("no output", "SW-FSRC-010", _HERE, fires=False),
]  # fmt: skip
