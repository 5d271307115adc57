"""Recorded ways to damage a checkpoint, each a function of one file (and a donor); used by tests of the reader."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

Edit = Callable[[Path, random.Random, list[Path]], None]


def files_below(checkpoint: Path) -> list[Path]:
    return sorted(path for path in checkpoint.rglob("*") if path.is_file() and not path.name.startswith("."))


def cut(to: float) -> Edit:
    def edit(path: Path, _random: random.Random, _donors: list[Path]) -> None:
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * to)])

    return edit


def cut_last_byte(path: Path, _random: random.Random, _donors: list[Path]) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip_bit(path: Path, chance: random.Random, _donors: list[Path]) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(data))


def remove(path: Path, _random: random.Random, _donors: list[Path]) -> None:
    path.unlink()


def append(path: Path, chance: random.Random, _donors: list[Path]) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(20))


def replace_by_noise(path: Path, chance: random.Random, _donors: list[Path]) -> None:
    path.write_bytes(chance.randbytes(path.stat().st_size))


def replace_by_other_kind(path: Path, chance: random.Random, donors: list[Path]) -> None:
    """The bytes of another file of the checkpoint, of another kind."""
    by_folder = path.suffix == ""
    others = [donor for donor in donors if _kind(donor, by_folder=by_folder) != _kind(path, by_folder=by_folder)]
    if others:
        path.write_bytes(chance.choice(others).read_bytes())


def _kind(path: Path, *, by_folder: bool) -> str:
    """Logs are distinguished by their directory, state files by their suffix."""
    return path.parent.name + path.suffix if by_folder else path.suffix


def swap_with_sibling(path: Path, chance: random.Random, _donors: list[Path]) -> None:
    """Two files of one directory change names, their checksums do not."""
    siblings = [other for other in files_below(path.parent) if other.parent == path.parent and other != path]
    if siblings:
        other = chance.choice(siblings)
        path_bytes, other_bytes = path.read_bytes(), other.read_bytes()
        path.write_bytes(other_bytes)
        other.write_bytes(path_bytes)


def become_directory(path: Path, _random: random.Random, _donors: list[Path]) -> None:
    path.unlink()
    path.mkdir()


EDITS: dict[str, Edit] = {
    "empty": cut(0.0),
    "cut-third": cut(0.33),
    "cut-most": cut(0.9),
    "cut-last-byte": cut_last_byte,
    "flip-bit": flip_bit,
    "remove": remove,
    "append": append,
    "noise": replace_by_noise,
    "other-kind": replace_by_other_kind,
    "swap": swap_with_sibling,
    "directory": become_directory,
}


def without_checksums(checkpoint: Path) -> None:
    """As after a copy that left hidden files behind, or on an object store."""
    for path in list(checkpoint.rglob(".*.crc")):
        path.unlink()


def damaged_copies(
    original: Path, folder: Path, seed: int, *, edits_per_file: int = len(EDITS)
) -> Iterator[tuple[str, Path, Path]]:
    """``(edit, file, checkpoint)`` for every file; the checkpoint is put right again after each.

    With fewer ``edits_per_file`` than there are, each file gets some by chance.
    """
    chance = random.Random(seed)
    copy = folder / "copy"
    shutil.copytree(original, copy)
    for path in files_below(copy):
        saved = {other: other.read_bytes() for other in files_below(path.parent) if other.parent == path.parent}
        for name, edit in chance.sample(sorted(EDITS.items()), edits_per_file):
            edit(path, chance, files_below(copy))
            yield name, path, copy
            if path.is_dir():
                path.rmdir()
            for other, data in saved.items():
                other.write_bytes(data)
