"""Damage by a seed: one edit of one file of a checkpoint, as disks, copies and people make it."""

import random
from collections.abc import Callable
from pathlib import Path

Edit = Callable[[Path, random.Random], None]


def _deleted(file: Path, _: random.Random) -> None:
    file.unlink()


def _emptied(file: Path, _: random.Random) -> None:
    file.write_bytes(b"")


def _cut(file: Path, dice: random.Random) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: dice.randrange(len(content) + 1)])


def _flipped(file: Path, dice: random.Random) -> None:
    content = bytearray(file.read_bytes() or b"\0")
    for _ in range(dice.randint(1, 4)):
        content[dice.randrange(len(content))] = dice.randrange(256)
    file.write_bytes(content)


def _noise(file: Path, dice: random.Random) -> None:
    file.write_bytes(dice.randbytes(dice.randint(1, 400)))


def _grown(file: Path, dice: random.Random) -> None:
    file.write_bytes(file.read_bytes() + dice.randbytes(dice.randint(1, 40)))


def _digit_changed(file: Path, dice: random.Random) -> None:
    content = bytearray(file.read_bytes())
    digits = [place for place, byte in enumerate(content) if byte in b"0123456789"]
    if digits:
        content[dice.choice(digits)] = dice.choice(b"0123456789")
        file.write_bytes(content)


def _copied_to_another_number(file: Path, dice: random.Random) -> None:
    file.with_name(f"{dice.randint(0, 120)}{file.suffix}").write_bytes(file.read_bytes())


def _a_directory_in_its_place(file: Path, _: random.Random) -> None:
    file.unlink()
    file.mkdir()


EDITS: tuple[Edit, ...] = (
    _deleted,
    _emptied,
    _cut,
    _flipped,
    _noise,
    _grown,
    _digit_changed,
    _copied_to_another_number,
    _a_directory_in_its_place,
)


def damage(checkpoint: Path, dice: random.Random) -> str:
    """Edit one file of a checkpoint, without Hadoop's checksum of it; what was done."""
    files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and not path.name.startswith("."))
    file, edit = dice.choice(files), dice.choice(EDITS)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    edit(file, dice)
    return f"{edit.__name__.strip('_')}: {file.relative_to(checkpoint)}"
