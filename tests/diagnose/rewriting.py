"""Edits that change what a file of a checkpoint says, with Hadoop's checksum of it deleted."""

import os
import re
from collections.abc import Callable
from pathlib import Path

_TIME = re.compile(r'"path":"file://([^"]*)","timestamp":(\d+)')
_PATH = re.compile(r'"path":"[^"]*/([^/"]+)"')


def replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(case: Path) -> None:
        file = case / name
        text = file.read_text()
        assert old in text, f"{name} has no {old}"
        _write(file, text.replace(old, new))

    return edit


def reread(*names: str, folder: str = "input") -> Callable[[Path], None]:
    """An edit that gives the files in logs their paths in this copy of the case; source files get their times."""

    def edit(case: Path) -> None:
        for name in names:
            for file in sorted((case / name).glob("[0-9]*")):
                _write(file, _PATH.sub(lambda found: f'"path":"file://{case}/{folder}/{found[1]}"', file.read_text()))
                for path, time_ms in _TIME.findall(file.read_text()):
                    os.utime(path, ns=(0, int(time_ms) * 1_000_000))

    return edit


def written_at(name: str, time_ms: int) -> Callable[[Path], None]:
    """An edit that gives a file a modification time; a missing one is created."""

    def edit(case: Path) -> None:
        (case / name).touch()
        os.utime(case / name, ns=(0, time_ms * 1_000_000))

    return edit


def swap(one: str, other: str) -> Callable[[Path], None]:
    def edit(case: Path) -> None:
        first, second = (case / one).read_text(), (case / other).read_text()
        _write(case / one, second)
        _write(case / other, first)

    return edit


def copy(older: str, newer: str) -> Callable[[Path], None]:
    """An edit that writes the content of one file over another."""

    def edit(case: Path) -> None:
        (case / newer).write_bytes((case / older).read_bytes())
        (case / newer).with_name(f".{Path(newer).name}.crc").unlink(missing_ok=True)

    return edit


def watermark(batch: int, milliseconds: int) -> Callable[[Path], None]:
    def edit(case: Path) -> None:
        _write(case / f"checkpoint/commits/{batch}", f'v1\n{{"nextBatchWatermarkMs":{milliseconds}}}')

    return edit


def delete_folder(name: str) -> Callable[[Path], None]:
    def edit(case: Path) -> None:
        for file in sorted((case / name).rglob("*")):
            if file.is_file():
                file.unlink()

    return edit


def _write(file: Path, text: str) -> None:
    file.write_text(text)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
