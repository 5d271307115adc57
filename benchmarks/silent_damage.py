"""Which damage of one log entry or state file ``doctor`` finds where the checkpoint has no checksums: a table.

    python benchmarks/silent_damage.py [--version 4.3.0] [--seed 0]

Of each case of the corpus that is healthy, one file at a time: each entry is replaced by the one before it, a digit of
each of its fields by another digit, each state file by that of the version before. The checkpoint was never recorded,
and has no checksum file. A copy that changes no byte is not counted.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

# In place of this folder, where inspect.py has the name of a module of the standard library.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from slackwater.diagnose.doctor import diagnose  # noqa: E402 - found by the path above
from slackwater.facts.collect import facts_of_location  # noqa: E402
from slackwater.storage.open import open_read_store  # noqa: E402
from tests.support.corpus import VERSIONS, corpus_case, corpus_cases  # noqa: E402

_STATE = re.compile(r"(\d+)(?:_[\w-]+)?(\.(?:delta|snapshot|changelog|zip))")
_FIELD = re.compile(r'"(\w+)":("?)(-?[\w./:-]*\d[\w./:-]*)\2')
_SETTINGS = re.compile(r'"conf":\{[^}]*\}')
_FLIPS = 2
"""Digits of each field of an entry."""
Damaged = tuple[str, Path, bytes]


def copies(checkpoint: Path) -> Iterator[Damaged]:
    """The kind of each copy of an older file over a newer one, the newer file, and its new content."""
    for folder in (checkpoint / "offsets", checkpoint / "commits", *sorted((checkpoint / "sources").glob("*"))):
        entries = sorted((one for one in folder.glob("*") if one.stem.isdigit()), key=lambda one: int(one.stem))
        for older, newer in pairwise(entries):
            if older.suffix == newer.suffix:
                kind = folder.name if folder.parent == checkpoint else "sources"
                yield f"copy: {kind}", newer, older.read_bytes()
    for newer in sorted((checkpoint / "state").rglob("*")):
        match = _STATE.fullmatch(newer.name)
        if match:
            before = int(match[1]) - 1
            for older in (*newer.parent.glob(f"{before}{match[2]}"), *newer.parent.glob(f"{before}_*{match[2]}")):
                yield f"copy: state {'ids ' if '_' in older.name else ''}{match[2]}", newer, older.read_bytes()


def flips(checkpoint: Path, dice: random.Random) -> Iterator[Damaged]:
    """The same for single digits, by the field that has them."""
    for log in ("offsets", "commits", "sources"):
        for file in sorted((checkpoint / log).rglob("*")):
            if file.is_file() and file.stem.isdigit():
                yield from _flips_of(file, log, dice)


def _flips_of(file: Path, log: str, dice: random.Random) -> Iterator[Damaged]:
    text = file.read_bytes().decode("latin-1")
    settings = [match.span() for match in _SETTINGS.finditer(text)]
    fields: dict[str, list[int]] = {}
    for place, character in enumerate(text):
        if character in "0123456789" and place > 2:
            fields.setdefault(_field(text, place, log, settings), []).append(place)
    for field, places in fields.items():
        for place in dice.sample(places, min(_FLIPS, len(places))):
            digit = dice.choice([one for one in "0123456789" if one != text[place]])
            yield f"digit: {log} {field}", file, f"{text[:place]}{digit}{text[place + 1 :]}".encode("latin-1")


def _field(text: str, place: int, log: str, settings: list[tuple[int, int]]) -> str:
    if any(start <= place < end for start, end in settings):
        return "conf"
    if log == "offsets" and text.count("\n", 0, place) > 1:
        return "offset"
    names = [match[1] for match in _FIELD.finditer(text) if match.start(3) <= place < match.end(3)]
    return names[0] if names and not (log == "commits" and "Ids" in text[:place]) else "other"


def problems(checkpoint: Path) -> set[str]:
    """The codes of what is wrong."""
    return {one.finding.code for one in diagnose(facts_of_location(open_read_store(str(checkpoint)), None)).problems}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", choices=VERSIONS, default=VERSIONS[-1])
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", default="", help="kinds of damage that start so")
    parser.add_argument("--missed", action="store_true", help="list what was not found")
    options = parser.parse_args()
    made: Counter[str] = Counter()
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in corpus_cases(options.version):
            checkpoint = corpus_case(options.version, name, Path(folder)) / "checkpoint"
            for checksum in [*checkpoint.rglob(".*.crc"), *checkpoint.rglob("*.crc")]:
                checksum.unlink(missing_ok=True)
            if problems(checkpoint):
                continue
            dice = random.Random(options.seed)
            for kind, file, content in [*copies(checkpoint), *flips(checkpoint, dice)]:
                before = file.read_bytes()
                if content == before or not kind.startswith(options.only):
                    continue
                file.write_bytes(content)
                made[kind] += 1
                if problems(checkpoint):
                    found[kind] += 1
                elif options.missed:
                    print(f"{name}: {kind}: {file.relative_to(checkpoint)}: {content[-120:]!r}")
                file.write_bytes(before)
    for kind in sorted(made):
        print(f"{kind:32} {found[kind]:5} of {made[kind]:5}")
    for group in ("copy: ", "digit: "):
        of_group = [kind for kind in made if kind.startswith(group)]
        print(f"{group + 'all':32} {sum(found[one] for one in of_group):5} of {sum(made[one] for one in of_group):5}")


if __name__ == "__main__":
    main()
