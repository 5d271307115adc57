"""Changes the table of a catalog as a step of an operation does, in a process that is killed at a point of it."""

import os
import signal
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter
from sqlalchemy import Engine, event

from slackwater.core.sink import Cut, Swap
from slackwater.sinks.iceberg.output import open_iceberg_output
from slackwater.sinks.iceberg.table_output import IcebergTableOutput
from slackwater.storage.local import LocalStore
from tests.sinks.iceberg_catalogs import NAME
from tests.support.kill_points import die_before, exit_code


def change(folder: Path, action: str, point: str) -> int:
    """The exit code of a process that takes the action; ``folder`` has slackwater.toml, the planned cut and swap."""
    return exit_code(partial(_change, folder, action, point))


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_at_update(_connection: object, _cursor: object, statement: str, *_: object) -> None:
    """Before the catalog's row names the new metadata."""
    if statement.startswith("UPDATE"):
        _die()


def _change(folder: Path, action: str, point: str) -> None:
    os.chdir(folder)
    output, backup = open_iceberg_output({"kind": "iceberg", "table": NAME}), LocalStore(folder / "backup")
    assert isinstance(output, IcebergTableOutput)
    cut = TypeAdapter(Cut).validate_json((folder / "cut.json").read_bytes())
    swap = TypeAdapter(Swap).validate_json((folder / "swap.json").read_bytes())
    if point == "record":
        die_before(1, str((folder / "backup").resolve()))
    elif point == "update":
        event.listen(Engine, "before_cursor_execute", _die_at_update)
    elif point == "commit":
        event.listen(Engine, "commit", _die)
    if action == "cut":
        output.cut(cut, {}, backup)
    elif action == "restore":
        output.restore(cut, backup)
    elif action == "stage":
        output.stage(swap.operation, -1, {})
    elif action == "swap":
        output.swap(swap, backup)
    else:
        output.swap_back(swap, backup)
    if point == "end":
        _die()
