"""Builds the output of a file sink aside and puts it in place: both folders change places in one step.

The manifest has absolute URIs, so its entries are rewritten before the exchange to name the files where they are after
it. A stream that reads the output takes all files for new ones then, because their names are: a stage behind this one
has to be replayed as well. Files that no manifest entry names go with the replaced output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from slackwater.errors import FormatError
from slackwater.formats.file_sink_log import FOLDER
from slackwater.model.damage import Damage
from slackwater.model.sink import Swap
from slackwater.sinks.aside import Aside, link_files, remove_leftovers
from slackwater.sinks.files.manifest import Lines, Manifest, batch_of, entry_lines, foreign
from slackwater.sinks.place import Place
from slackwater.sinks.swapping import absent, check_whole, incomplete
from slackwater.storage.local import LocalStore

NameOf = Callable[[str], str]
"""The path below the output of a file that an entry names by its URI. Raises Refused for a file elsewhere."""


def fill(aside: Aside, manifest: Manifest, after: int, recorded: Lines, find: Callable[[str], str | None]) -> None:
    """Give the staged output the files and entries of the batches up to ``after``. Raises Refused, SinkUnreadable.

    ``find`` returns the path below the output of the file that a URI names.
    """
    if manifest.newest() < after:
        raise incomplete(str(aside.real), f"batches up to {after}", f"batch {manifest.newest()} as the newest")
    entries, name_of = manifest.after_cut(after, recorded), _known(aside, find)
    for name in manifest.all_names():
        if batch_of(name) <= after:
            entries[name] = manifest.read(name).decode()
    link_files(aside.real, aside.folder, _with_side_files(aside.real, _names_in(entries.values(), name_of)))
    store = LocalStore(aside.folder)
    for name, content in sorted(entries.items(), key=lambda entry: batch_of(entry[0])):
        store.write(f"{FOLDER}/{name}", _moved(content, aside.folder, name_of).encode())


def check(aside: Aside, swap: Swap) -> None:
    """Raises Refused unless the staged output is ready and whole."""
    if aside.state != "staged":
        raise absent(str(aside.folder), swap.operation, aside.state or "no folder")
    check_whole(str(aside.folder), list(_damage(aside)))


def name_files_in(aside: Aside, place: Path) -> None:
    """Make the entries of the output in the folder aside name its files as if they were in ``place``.

    Hadoop verifies an entry by its side file, which goes first: without one it verifies nothing.
    """
    store, name_of = LocalStore(aside.folder), _names_of(aside)
    manifest = Manifest(store)
    remove_leftovers(aside.folder / FOLDER)
    for name in manifest.all_names():
        content = manifest.read(name).decode()
        moved = _moved(content, place, name_of)
        if moved != content:
            store.delete(f"{FOLDER}/.{name}.crc")
            store.write(f"{FOLDER}/{name}", moved.encode())


def exchange(aside: Aside) -> None:
    """Put the staged output in place, and leave no mark in it."""
    if aside.mark_in(aside.folder) == "staged":
        aside.exchange()
    aside.set_mark(aside.folder, "replaced")
    aside.remove_mark(aside.real)


def exchange_back(aside: Aside) -> None:
    """Undo ``exchange``; the staged output is aside again."""
    if aside.mark_in(aside.folder) == "replaced":
        aside.set_mark(aside.real, "staged")
        aside.remove_mark(aside.folder)
    if aside.mark_in(aside.real) == "staged":
        aside.exchange()
    remove_leftovers(aside.real)


def _names_of(aside: Aside) -> NameOf:
    """Knows files by their URIs in either place: some entries may have been rewritten already."""
    places = Place(str(aside.folder)), Place(str(aside.real))
    return _known(aside, lambda uri: next((name for place in places if (name := place.name_of(uri)) is not None), None))


def _known(aside: Aside, find: Callable[[str], str | None]) -> NameOf:
    def name_of(uri: str) -> str:
        name = find(uri)
        if name is None:
            raise foreign(str(aside.real), uri)
        return name

    return name_of


def _moved(content: str, place: Path, name_of: NameOf) -> str:
    """An entry with the same files in ``place``."""
    version, *_ = content.split("\n")
    return "\n".join([version, *(_moved_line(line, place, name_of) for line in entry_lines(content))])


def _moved_line(line: str, place: Path, name_of: NameOf) -> str:
    fields = json.loads(line)
    uri = str(fields["path"])
    name = name_of(uri)
    # The end of the URI stays as Spark encoded it.
    fields["path"] = "/".join([place.as_uri(), *uri.split("/")[-name.count("/") - 1 :]])
    return line if fields["path"] == uri else json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _names_in(entries: Iterable[str], name_of: NameOf) -> set[str]:
    lines = (json.loads(line) for content in entries for line in entry_lines(content))
    return {name_of(str(line["path"])) for line in lines}


def _with_side_files(folder: Path, names: Iterable[str]) -> Iterator[str]:
    """The files and their side files. Raises Refused for a file that does not exist."""
    for name in sorted(names):
        path = folder / name
        if not path.exists():
            raise incomplete(str(folder), name, "no file")
        side = path.with_name(f".{path.name}.crc")
        if side.exists():
            yield str(side.relative_to(folder))
        yield name


def _damage(aside: Aside) -> Iterator[Damage]:
    """What is missing or malformed in the staged output, whichever place its entries name."""
    manifest, name_of = Manifest(LocalStore(aside.folder)), _names_of(aside)
    for first, _ in manifest.gaps():
        yield Damage(f"{FOLDER}/{first}", "missing", f"the entry of batch {first}", "no file")
    for entry in manifest.valid_names():
        try:
            files = manifest.parse(entry)[1]
        except (OSError, FormatError) as error:
            yield Damage(f"{FOLDER}/{entry}", "unreadable", "a file sink manifest", str(error))
            continue
        for file in files:
            path = aside.folder / name_of(file.path)
            size = path.stat().st_size if path.is_file() else None
            if size != file.size:
                found = "no file" if size is None else f"{size} bytes"
                yield Damage(str(path.relative_to(aside.folder)), "torn", f"{file.size} bytes", found)
