"""The file sink's output directory: its manifest ``_spark_metadata`` says which files count, batch by batch.

Cutting takes whole batches out of the manifest, newest first, and moves their files aside. The manifest may have been
compacted beyond the cut: then what each batch added must be known from its own entry or from the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from slackwater.errors import FormatError, Refused, SinkUnreadable
from slackwater.formats.compactible import derive_interval, lay_out, parse_entry_name
from slackwater.formats.file_sink_log import parse_file_sink_log, parse_sink_file
from slackwater.model.sink import Cut
from slackwater.storage.protocols import WriteStore

MANIFEST = "_spark_metadata"


class FilesOutput:
    """One output directory of Spark's file sink."""

    def __init__(self, store: WriteStore) -> None:
        self.store = store

    def last_written(self) -> int:
        """The newest batch of the manifest, -1 where there is none. Raises SinkUnreadable where it does not decode."""
        newest = max(self._names().items(), default=None)
        if newest is None:
            return -1
        self._read(newest[1])
        return newest[0]

    def cut_after(self, batch_id: int, recorded: Mapping[int, Sequence[str]]) -> Cut:
        """What batches after ``batch_id`` wrote. ``recorded``: lines that belong to one batch alone, from the ledger.

        Raises Refused where a batch was compacted away and nobody remembers what it wrote.
        """
        batches = tuple(range(batch_id + 1, self.last_written() + 1))
        files = [parse_sink_file(line) for batch in batches for line in self._own_lines(batch, recorded)]
        return Cut(batch_id, batches, tuple(file.path for file in files), sum(file.size for file in files))

    def manifest_after_cut(self, batch_id: int, recorded: Mapping[int, Sequence[str]]) -> dict[str, str]:
        """Manifest files (name -> text) to be there once nothing after ``batch_id`` is: those a compaction took."""
        names = self._names()
        compacted = max((entry for entry, name in names.items() if name.endswith(".compact")), default=-1)
        if compacted <= batch_id:
            return {}
        cut_lines = {line for batch in range(batch_id + 1, compacted + 1) for line in self._own_lines(batch, recorded)}
        kept = [line for line in self._lines(names[compacted]) if line not in cut_lines]
        interval = derive_interval(names.values())
        first_single = (batch_id + 1) // interval * interval
        entries = {batch: self._own_lines(batch, recorded) for batch in range(first_single, batch_id + 1)}
        single_lines = {line for lines in entries.values() for line in lines}
        # Which of the older batches a line belongs to no longer matters to anybody: only compacted entries hold it.
        older = {0: [line for line in kept if line not in single_lines]} if first_single else {}
        return lay_out({**older, **entries}, batch_id, interval)

    def names_after(self, batch_id: int) -> list[str]:
        """Names of manifest entries after ``batch_id``, newest first: the order in which they can be removed."""
        return [name for entry, name in sorted(self._names().items(), reverse=True) if entry > batch_id]

    def _names(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for entry in self.store.list(MANIFEST):
            parsed = parse_entry_name(entry.name)
            # Where both N and N.compact lie there, Spark reads the compacted one.
            if parsed is not None and not entry.is_dir and (parsed[1] or parsed[0] not in found):
                found[parsed[0]] = entry.name
        return found

    def _own_lines(self, batch: int, recorded: Mapping[int, Sequence[str]]) -> list[str]:
        if batch in recorded:
            return list(recorded[batch])
        name = self._names().get(batch)
        if name is not None and not name.endswith(".compact"):
            return self._lines(name)
        raise Refused(
            "sink-cut-unknown",
            f"Nobody remembers which files batch {batch} wrote: its entry was compacted and the ledger has none",
            where=f"{self.store.location}/{MANIFEST}",
        )

    def _lines(self, name: str) -> list[str]:
        return [line for line in self._read(name).decode().split("\n")[1:] if line.strip()]

    def _read(self, name: str) -> bytes:
        path = f"{MANIFEST}/{name}"
        try:
            data = self.store.read(path)
            parse_file_sink_log(data)
        except (OSError, FormatError) as error:
            reason = error if isinstance(error, FormatError) else None
            raise SinkUnreadable(
                "sink-unreadable",
                f"The sink cannot say what was last written: its newest manifest entry does not read ({error})",
                where=f"{self.store.location}/{path}",
                expected=(reason.expected if reason else None) or "a file sink manifest",
                found=(reason.found if reason else None) or "a file that does not read",
                hint="restore the file from a backup; nothing was changed",
            ) from error
        return data


def manifest_lines(texts: Mapping[int, str]) -> dict[int, list[str]]:
    """The ledger's verbatim manifest entries as lines of files."""
    return {batch: [line for line in _body(text) if line.strip()] for batch, text in texts.items()}


def _body(text: str) -> Iterable[str]:
    return text.split("\n")[1:]
