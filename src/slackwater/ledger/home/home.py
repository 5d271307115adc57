"""The home of pipelines: for each stream its checkpoints, its operations and ``stream.json``; locally the ledger, too.

What Slackwater creates here is private (modes 0600 and 0700) where the store has modes; checkpoints have the modes that
Spark gives them.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from slackwater.core.errors import SettingsError
from slackwater.storage.location import AnyLocation, Location
from slackwater.storage.open import check_location, local_path_of, open_write_store, resolved
from slackwater.storage.protocols import WriteStore

NUMBER_DIGITS = 10
"""Folders with longer names are not generations."""


class Home:
    """Locations below one folder of a store. Names of pipelines and streams must have been validated.

    Raises UsageError (``unknown-scheme``) for a URI of which no kind of store is known.
    """

    def __init__(self, location: AnyLocation) -> None:
        given = os.fspath(location)
        self.location = Location(Path(given).expanduser() if local_path_of(given) == given else given)
        check_location(self.location)

    @cached_property
    def store(self) -> WriteStore:
        """The store of the home. Raises SettingsError (``home-store``) where it cannot be relied on."""
        store = open_write_store(self.location, private=True)
        if not (store.traits.durable and store.traits.lists_at_once):
            raise SettingsError(
                "home-store",
                "The home cannot be on this kind of store",
                where=self.location,
                expected="a store that keeps what was written, and lists it at once",
                hint="choose another with --home, SLACKWATER_HOME, or home in slackwater.toml",
            )
        return store

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return self.location.local is not None

    @property
    def given(self) -> Path | str:
        """The location as the user's code gets it: a path of this machine, or a URI."""
        return self.location.local or str(self.location)

    @property
    def resolved(self) -> str:
        """The location with symlinks resolved: one spelling for each place."""
        return resolved(self.location)

    @property
    def ledger_url(self) -> str:
        """The ledger of this home, unless the settings name another one.

        Raises SettingsError (``home-needs-ledger``) for a home that is not on this machine: a database file cannot be
        on an object store.
        """
        if not self.is_local:
            raise SettingsError(
                "home-needs-ledger",
                "A home on a shared store needs a ledger that is named",
                where=self.location,
                expected="the address of a PostgreSQL database, or for one driver a path of its machine",
                found="no ledger",
                hint="set ledger in slackwater.toml, or SLACKWATER_LEDGER",
            )
        return self.location / "ledger.db"

    def stream_folder(self, pipeline: str, stream: str) -> Location:
        """The folder of one stream."""
        return self.location / "streams" / pipeline / stream

    def checkpoints(self, pipeline: str, stream: str) -> Location:
        """The parent of the checkpoint directories."""
        return self.stream_folder(pipeline, stream) / "checkpoints"

    def generation_numbers(self, pipeline: str, stream: str) -> list[int]:
        """The numbers of the checkpoint folders that exist, whoever made them."""
        names = [entry.name for entry in open_write_store(self.checkpoints(pipeline, stream)).list()]
        return sorted(int(name) for name in names if name.isascii() and name.isdigit() and len(name) < NUMBER_DIGITS)

    def checkpoint(self, pipeline: str, stream: str, number: int) -> Location:
        """The checkpoint directory of one generation."""
        return self.checkpoints(pipeline, stream) / f"{number:04d}"

    def operations(self, pipeline: str, stream: str) -> Location:
        """The parent of the operations' folders."""
        return self.stream_folder(pipeline, stream) / "operations"

    def operation(self, pipeline: str, stream: str, operation_id: str) -> Location:
        """The folder with the plan, journal and backup of one operation."""
        return self.operations(pipeline, stream) / operation_id
