"""Writes the input of all examples of this folder: small files of JSON lines, the same ones every time.

    python make_input.py [FOLDER]

writes ``readings/`` (what devices measure, some of it late or sent twice), ``views/`` and ``clicks/`` (of
advertisements) and ``devices.json`` (where each device is) into FOLDER (default: the working directory). The readings
are there in other formats (``as_csv/``, ...), by day, in folders whose
partition columns change, and to be archived or deleted as they are read, too.
"""

import json
import os
import random
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, orc, parquet

Rows = list[dict[str, object]]

FILES = 6
ROWS = 24
MINUTES = 12
LATE_MINUTES = 30
START = datetime(2026, 1, 1, tzinfo=UTC)
DEVICES = ("d-1", "d-2", "d-3", "d-4")
KINDS = ("heat", "light")
VIEWS = 12
AVRO_SYNC = bytes(range(16))


def write(folder: Path) -> None:
    """Write the input into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder / "readings", readings())
    write_files(folder / "views", views())
    write_files(folder / "clicks", clicks())
    write_formats(folder)
    devices: Rows = [{"device": device, "place": f"hall {number}"} for number, device in enumerate(DEVICES[:-1])]
    (folder / "devices.json").write_text(lines(devices), encoding="utf-8")


def readings() -> Iterable[Rows]:
    """The readings of each file: event time advances 12 minutes a file, with rows that are up to 30 minutes late."""
    dice = random.Random(1)
    for number in range(FILES):
        rows: Rows = []
        for _ in range(ROWS):
            minute = max(0, number * MINUTES + dice.randint(-LATE_MINUTES, MINUTES))
            row = {"device": dice.choice(DEVICES), "kind": dice.choice(KINDS), "n": dice.randint(1, 9)}
            rows.append({"at": stamp(minute, dice.randrange(60)), **row})
        # Devices send some readings twice.
        yield rows + rows[:3]


def views() -> Iterable[Rows]:
    """Views of advertisements, each with a number of its own; two are too late."""
    dice = random.Random(2)
    for file in range(FILES):
        yield [
            {"ad": file * VIEWS + number, "viewed_at": stamp(max(0, file * MINUTES + dice.randint(-8, MINUTES)))}
            for number in range(VIEWS)
        ]


def clicks() -> Iterable[Rows]:
    """Clicks on two of three advertisements, up to a file before or two files after the view, and some on none."""
    dice = random.Random(3)
    arrived: list[Rows] = [[] for _ in range(FILES)]
    for ad in range(FILES * VIEWS):
        if ad % 3:
            file = min(FILES - 1, max(0, ad // VIEWS + dice.randint(-1, 2)))
            arrived[file].append({"clicked": ad, "clicked_at": stamp(file * MINUTES + dice.randint(0, MINUTES))})
    for file, rows in enumerate(arrived):
        yield [*rows, {"clicked": 1000 + file, "clicked_at": stamp(file * MINUTES)}]


def stamp(minute: int, second: int = 0) -> str:
    """A time as text."""
    return (START + timedelta(minutes=minute, seconds=second)).isoformat()


def write_files(folder: Path, contents: Iterable[Rows]) -> None:
    """Write one file of JSON lines for each list of rows."""
    for number, rows in enumerate(contents):
        write_file(folder / f"{number:03d}.json", number, lines(rows).encode())


def write_formats(folder: Path) -> None:
    """Write the readings again for the examples of file sources."""
    for number, rows in enumerate(readings()):
        name = f"{number:03d}"
        texts = pa.Table.from_pylist(rows)
        at = [datetime.fromisoformat(str(row["at"])) for row in rows]
        typed = texts.set_column(0, "at", pa.array(at, pa.timestamp("us", "UTC")))
        write_file(folder / "as_text" / f"{name}.txt", number, lines(rows).encode())
        write_file(folder / "as_csv" / f"{name}.csv", number, written(csv.write_csv, texts))
        write_file(folder / "as_parquet" / f"{name}.parquet", number, written(parquet.write_table, typed))
        # pyarrow writes times with a zone as a type of ORC that Spark does not read as TIMESTAMP.
        local = typed.set_column(0, "at", typed["at"].cast(pa.timestamp("us")))
        write_file(folder / "as_orc" / f"{name}.orc", number, written(orc.write_table, local))
        write_file(folder / "as_avro" / f"{name}.avro", number, avro(rows))
        changed = "" if number < FILES // 2 else f"/half={number % 2}"
        for place in (f"by_day/day={number // 3 + 1}", f"by_day_and_half/day=1{changed}", "to_archive", "to_delete"):
            write_file(folder / place / f"{name}.json", number, lines(rows).encode())


def written(writer: Callable[[pa.Table, pa.BufferOutputStream], object], table: pa.Table) -> bytes:
    """The bytes of a file that has the table."""
    stream = pa.BufferOutputStream()
    writer(table, stream)
    return stream.getvalue().to_pybytes()


def avro(rows: Rows) -> bytes:
    """The rows as an Avro file of one block, without compression."""
    fields = [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "device", "type": "string"},
        {"name": "kind", "type": "string"},
        {"name": "n", "type": "long"},
    ]
    schema = json.dumps({"type": "record", "name": "reading", "fields": fields}).encode()
    header = avro_long(1) + avro_bytes(b"avro.schema") + avro_bytes(schema) + avro_long(0)
    block = b"".join(map(avro_row, rows))
    return b"Obj\x01" + header + AVRO_SYNC + avro_long(len(rows)) + avro_bytes(block) + AVRO_SYNC


def avro_row(row: dict[str, object]) -> bytes:
    """One reading."""
    at_us = round(datetime.fromisoformat(str(row["at"])).timestamp() * 1_000_000)
    device, kind = (avro_bytes(str(row[name]).encode()) for name in ("device", "kind"))
    return avro_long(at_us) + device + kind + avro_long(int(str(row["n"])))


def avro_bytes(content: bytes) -> bytes:
    """Bytes or a string: the length, then the content."""
    return avro_long(len(content)) + content


def avro_long(value: int) -> bytes:
    """A number as Avro's variable-length zig-zag encoding."""
    rest, encoded = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


def write_file(file: Path, number: int, content: bytes) -> None:
    """Write a file; those of a folder are a second apart, because Spark's file source reads the oldest first."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (START.timestamp() + number, START.timestamp() + number))


def lines(rows: Rows) -> str:
    """Rows as lines of JSON."""
    return "".join(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
