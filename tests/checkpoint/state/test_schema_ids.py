"""The schema of a value by the id that its row has: each state variable counts its own schemas."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

from slackwater.checkpoint.inventory import read_inventory
from slackwater.checkpoint.listing import read_listing
from slackwater.checkpoint.operators import OperatorReader
from slackwater.storage.local import LocalStore

ENCODER = json.dumps({"keyStateEncoderType": "NoPrefixKeyStateEncoderSpec"})


def utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def big(text: str) -> bytes:
    return struct.pack(">i", 1) + utf(text)


def columns(names: str) -> str:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
    return json.dumps({"type": "struct", "fields": fields})


def schema_file(families: Mapping[str, tuple[int, str]]) -> bytes:
    """Version 3: of each state variable the id of the schema of its values, and their columns."""
    made = [
        utf(name) + struct.pack(">h", 0) + big(columns("k")) + struct.pack(">h", number) + big(columns(names))
        + big(ENCODER) + big("{    }")
        for name, (number, names) in families.items()
    ]  # fmt: skip
    return utf("v3") + struct.pack(">i", len(made)) + b"".join(made)


def test_each_variable_counts_its_own_schemas(tmp_path: Path) -> None:
    """The second file is of a start that changed ``b``, the third of one that changed ``a``: its second schema."""
    folder = tmp_path / "state/0/_stateSchema/default"
    folder.mkdir(parents=True)
    (tmp_path / "state/0/0").mkdir()
    (tmp_path / "state/0/0/1.changelog").touch()
    for number, families in enumerate(
        [{"a": (0, "x"), "b": (0, "x")}, {"a": (0, "x"), "b": (1, "xy")}, {"a": (1, "xyz"), "b": (1, "xy")}]
    ):
        (folder / f"{number}_file").write_bytes(schema_file(families))
    store = LocalStore(tmp_path)
    listing = read_listing(store)

    [read] = OperatorReader(store, listing, read_inventory(listing)).operator(0).stores

    schemas = {
        name: {number: "".join(one.value.names) for number, one in schemas.items()}
        for name, schemas in read.value_schemas.items()
    }
    assert schemas == {"a": {0: "x", 1: "xyz"}, "b": {0: "x", 1: "xy"}}
