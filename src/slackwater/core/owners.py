"""Checks owners: a path that leads to code or a folder is used only if this user or root put it there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from slackwater.core.errors import SettingsError
from slackwater.core.escaping import quoted

SAFE_DIRECTORY = "SLACKWATER_SAFE_DIRECTORY"
ROOT = 0


def other_owner(path: Path, environment: Mapping[str, str] = os.environ) -> int | None:
    """The owner of a path or its target, if neither this user nor root.

    Root also trusts the user who called sudo. Everything in folders of ``SLACKWATER_SAFE_DIRECTORY`` (separated by
    ``:``; ``*`` is everywhere) is trusted.
    """
    user = os.geteuid()
    trusted = {user, ROOT}
    sudo = environment.get("SUDO_UID", "")
    if user == ROOT and sudo.isascii() and sudo.isdigit():
        trusted.add(int(sudo))
    # What cannot be looked at is reported with its reason when it is used; RuntimeError: of links in a circle.
    with suppress(OSError, ValueError, RuntimeError):
        safe = [one for one in environment.get(SAFE_DIRECTORY, "").split(os.pathsep) if one]
        for status, place in ((path.lstat, _place(path)), (path.stat, path.resolve())):
            owner = status().st_uid
            if _is_below(place, safe):
                return None
            if owner not in trusted:
                return owner
    return None


def check_owner(path: Path, folder: Path) -> None:
    """Raises SettingsError for another user's path; the hint trusts ``folder``."""
    owner = other_owner(path)
    if owner is not None:
        raise SettingsError(
            "home-owner",
            "The home, or a file that it has or names, belongs to another user; nothing was read from it or changed",
            where=str(path),
            expected=only_own(),
            found=f"a file or folder of user {owner}",
            hint="run the command as this user; or, if you trust it: "
            f"export SLACKWATER_SAFE_DIRECTORY={safe_with(folder)}",
        )


def only_own() -> str:
    return f"one that user {os.geteuid()} or root owns"


def safe_with(folder: Path, environment: Mapping[str, str] = os.environ) -> str:
    known = environment.get(SAFE_DIRECTORY, "")
    return quoted(os.pathsep.join(filter(None, (known, str(folder)))))


def _place(path: Path) -> Path:
    return path.parent.resolve() / path.name


def _is_below(place: Path, folders: Iterable[str]) -> bool:
    return any(
        one == "*" or place.is_relative_to(Path(one).resolve()) or place.is_relative_to(_place(Path(one)))
        for one in folders
    )
