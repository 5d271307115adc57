"""Settings: ``slackwater.toml`` (found upward from the working directory), then ``SLACKWATER_*``, then flags.

A path that leads to code or a folder is used only if this user or root put it there.
"""

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from slackwater.core.errors import EnvironmentMissing, SettingsError
from slackwater.core.escaping import is_unicode, quoted
from slackwater.core.masking import KNOWN_SECRETS, brief

FILE_NAME = "slackwater.toml"
MOST_RESTARTS = 1_000_000
MOST_BYTES = 65_536
_KINDS: Mapping[object, str] = {dict: "a table", list: "a list", str: "a string"}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")
_LONG_KEY = re.compile(rb"""(?<![\w\-])(?:(?:"[^"\n]*+"|'[^'\n]*+'|[\w\-]++)[ \t]*+\.[ \t]*+){100}""")
"""A dotted key: the parser's time and memory grow with the square of its parts."""
_HOME_HINT = "choose a different home with --home, SLACKWATER_HOME, or home in slackwater.toml"
KNOWN_KEYS = {"home", "ledger", "master", "log_level", "log_format", "connectors", "spark", "storage", "restarts"}


@dataclass(frozen=True, slots=True)
class Settings:
    """``home`` is a local folder or a store's URI. ``spark`` is for ``--conf``, ``storage`` by kind of store."""

    home: Path | str
    ledger: str | None = None
    master: str | None = None
    log_level: str = "warning"
    log_format: str = "console"
    connectors: tuple[str, ...] = ()
    spark: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    restarts: int = 5


def load(*, home: str | None = None) -> Settings:
    """The home is ``home`` (the flag), else ``SLACKWATER_HOME``, else ``home`` in the file, else ``.slackwater`` next
    to it. Raises SettingsError for a malformed file, key or value, EnvironmentMissing if the working directory or home
    is inaccessible.
    """
    folder = _working_directory()
    file, values = _read(folder)
    connectors = values.get("connectors", [])
    if not isinstance(connectors, list) or not all(_is_usable(item) for item in connectors):
        _refuse("connectors", "a list of strings", connectors, file)
    restarts = values.get("restarts", 5)
    if not isinstance(restarts, int) or isinstance(restarts, bool) or not 0 <= restarts <= MOST_RESTARTS:
        _refuse("restarts", f"an integer from 0 to {MOST_RESTARTS}", restarts, file)
    storage = values.get("storage", {})
    tables = storage.values() if isinstance(storage, dict) else [storage]
    if not all(isinstance(table, dict) and all(map(_is_usable, table.values())) for table in tables):
        # A key may stand where a reference to it belongs.
        expected = 'tables of strings, such as [storage.s3] with secret_access_key = "env:NAME"'
        _refuse_as("storage", expected, f"{_KINDS.get(type(storage), 'a value')}, not shown here", file)
    return Settings(
        home=_home(home, values, file.parent if file else folder, folder),
        ledger=_ledger(values, file),
        master=_string(values, "master", file),
        log_level=_choice(values, "log_level", "warning", ("debug", "info", "warning", "error"), file),
        log_format=_choice(values, "log_format", "console", ("console", "json"), file),
        connectors=tuple(connectors),
        spark=_spark(values, file),
        storage=storage,
        restarts=restarts,
    )


def spark_settings() -> dict[str, str]:
    """``spark`` for the working directory. Raises as ``load``."""
    file, values = _read(_working_directory())
    return _spark(values, file)


def _remember_secrets(values: Mapping[str, Any], table: str = "") -> None:
    """Comes first: a message about a wrong value must not show a secret."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            _remember_secrets(value, name)
        else:
            KNOWN_SECRETS.remember(f"{table}.{name}", value)


def _check_owner(file: Path) -> None:
    """The file names a home, jars and settings of the JVM. Raises SettingsError."""
    owner = other_owner(file)
    if owner is not None:
        raise SettingsError(
            "settings-owner",
            "The settings file belongs to a different user",
            where=str(file),
            expected=only_own(),
            found=f"a file of user {owner}",
            hint=f"if you trust it: export SLACKWATER_SAFE_DIRECTORY={safe_with(file.parent)}",
        )


def _working_directory() -> Path:
    try:
        folder = Path.cwd()
    except FileNotFoundError as error:
        raise EnvironmentMissing(
            "working-directory",
            "The working directory no longer exists",
            expected="a folder that exists",
            found="a folder that was removed",
            hint="change to a different folder, for example: cd ~",
        ) from error
    if not is_unicode(str(folder)):
        raise EnvironmentMissing(
            "working-directory",
            "The path of the working directory is not valid UTF-8, and could not be recorded",
            expected="a path in UTF-8",
            found=ascii(str(folder)),
            hint="rename the folder, or change to a different one",
        )
    return folder


def _read(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    """The settings file of a folder, or of the nearest folder above, and its values."""
    files = (parent / FILE_NAME for parent in (folder, *folder.parents))
    file = next(filter(os.path.lexists, files), None)
    if file is None:
        return None, {}
    _check_owner(file)
    import tomllib  # noqa: PLC0415 - most homes have no such file

    try:
        if not file.is_file():
            raise _unparsable(file, "it is not a regular file")
        data = file.read_bytes()
        if len(data) > MOST_BYTES:
            raise _unparsable(file, f"it has more than {MOST_BYTES} bytes")
        if _LONG_KEY.search(data):
            raise _unparsable(file, "a key has more than 100 parts")
        values = tomllib.loads(data.decode())
        # A number in hexadecimal can have more digits than Python writes: refused here, not where it is shown.
        repr(values)
    except (OSError, ValueError, RecursionError) as error:
        raise _unparsable(file, str(error)) from error
    _remember_secrets(values)
    unknown = sorted(set(values) - KNOWN_KEYS)
    if unknown:
        raise SettingsError(
            "settings-key",
            "The settings file has an unknown key",
            where=str(file),
            expected="one of " + ", ".join(sorted(KNOWN_KEYS)),
            found=", ".join(map(repr, unknown)),
            hint=f"edit {file}; Spark settings are quoted keys below [spark]",
        )
    return file, values


def _unparsable(file: Path, reason: str) -> SettingsError:
    return SettingsError(
        "settings-unreadable",
        f"The settings file cannot be parsed: {reason}",
        where=str(file),
        hint=f"edit or remove {file}",
    )


def _home(flag: str | None, values: Mapping[str, Any], base: Path, folder: Path) -> Path | str:
    chosen = flag or _of_environment("home")
    place = chosen or _of_file(values, "home", base / FILE_NAME) or ".slackwater"
    if _URI.match(place):
        return place
    kind = None
    try:
        home = ((folder if chosen else base) / Path(place).expanduser()).absolute()
        with suppress(FileNotFoundError):
            kind = home.stat().st_mode
    except NotADirectoryError as error:
        raise _home_is_file(place) from error
    except PermissionError as error:
        raise _inaccessible_home(error.filename or place) from error
    except (OSError, RuntimeError) as error:  # RuntimeError: ~name of an unknown user
        raise SettingsError(
            "home-unusable",
            "The home is not a usable path",
            where=brief(place),
            found=getattr(error, "strerror", None) or str(error),
            hint=_HOME_HINT,
        ) from error
    if kind is not None and not stat.S_ISDIR(kind):
        raise _home_is_file(home)
    if kind is not None and not os.access(home, os.R_OK | os.X_OK):
        raise _inaccessible_home(home)
    return home


def _home_is_file(place: object) -> SettingsError:
    return SettingsError(
        "home-is-file",
        "The home cannot be a file",
        where=str(place),
        expected="a folder, or a path where nothing is yet",
        found="a file",
        hint=_HOME_HINT,
    )


def _inaccessible_home(place: object) -> EnvironmentMissing:
    return EnvironmentMissing(
        "home-inaccessible",
        "This user may not read the home",
        where=str(place),
        found="permission denied",
        hint=f"run as the user whose home it is, or {_HOME_HINT}",
    )


def _ledger(values: Mapping[str, Any], file: Path | None) -> str | None:
    """The ledger's address, checked without opening it, never with the password."""
    address = _string(values, "ledger", file)
    if address is None:
        return None
    try:
        if "://" in address:
            from urllib.parse import urlsplit  # noqa: PLC0415 - most homes are plain paths

            # Reading the port is what parses it.
            _ = urlsplit(address).port
        elif not _URI.match(address):
            Path(address).expanduser().exists()
    except (ValueError, RuntimeError, OSError) as error:
        raise _unusable_ledger(address) from error
    if "://" not in address and _URI.match(address):
        raise _unusable_ledger(address)
    return address


def _unusable_ledger(address: str) -> SettingsError:
    scheme, separator, _ = address.partition("://")
    return SettingsError(
        "ledger-url",
        "The ledger's address cannot be used",
        expected="a file path or postgresql://user@host:port/database",
        found=f"{scheme}://... with a host or port that cannot be parsed" if separator else brief(address),
        hint="set ledger in slackwater.toml, or SLACKWATER_LEDGER, to a path or a postgresql:// address",
    )


def _string(values: Mapping[str, Any], key: str, file: Path | None) -> str | None:
    return _of_environment(key) or _of_file(values, key, file)


def _of_environment(key: str) -> str | None:
    """A variable set to nothing counts as not set."""
    value = os.environ.get(f"SLACKWATER_{key.upper()}") or None
    if value is not None and not _is_usable(value):
        _refuse(key, "a string in UTF-8 that is not blank", value, None)
    return value


def _of_file(values: Mapping[str, Any], key: str, file: Path | None) -> str | None:
    value = values.get(key)
    if value is not None and not _is_usable(value):
        _refuse(key, "a string that is not empty", value, file)
    return value


def _is_usable(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and is_unicode(value)


def _choice(values: Mapping[str, Any], key: str, default: str, allowed: tuple[str, ...], file: Path | None) -> str:
    of_environment = _of_environment(key)
    value = of_environment or values.get(key, default)
    if value not in allowed:
        _refuse(key, "one of " + ", ".join(allowed), value, None if of_environment else file)
    return str(value)


def _spark(values: Mapping[str, Any], file: Path | None) -> dict[str, str]:
    value = values.get("spark", {})
    expected = 'a table of quoted keys, such as "spark.sql.shuffle.partitions" = 4'
    if not isinstance(value, dict):
        _refuse_as("spark", expected, f"{_KINDS.get(type(value), 'a value')}, not shown here", file)
    for key, item in value.items():
        plain = not isinstance(item, dict | list) and is_unicode(str(item))
        if not plain or not _is_usable(key) or any(map(str.isspace, key)):
            # The value may be a password, whatever its key is called.
            kind = _KINDS.get(type(item), "a value")
            _refuse_as("spark", expected, f"{kind} for the key {brief(ascii(key))}, not shown here", file)
    # As Spark writes it: ``true``, not Python's ``True``.
    return {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}


def _refuse(key: str, expected: str, found: object, file: Path | None) -> NoReturn:
    _refuse_as(key, expected, brief(ascii(found)), file)


def _refuse_as(key: str, expected: str, found: str, file: Path | None) -> NoReturn:
    variable = f"SLACKWATER_{key.upper()}"
    raise SettingsError(
        "settings-value",
        f"The setting {key} cannot be used",
        where=str(file) if file else variable,
        expected=expected,
        found=found,
        hint=f"edit {file}" if file else f"set {variable} to a different value, or unset it",
    )


SAFE_DIRECTORY = "SLACKWATER_SAFE_DIRECTORY"
ROOT = 0


def other_owner(path: Path) -> int | None:
    """The owner of a path or its target, if neither this user nor root.

    Root also trusts the user who called sudo. Everything in folders of ``SLACKWATER_SAFE_DIRECTORY`` (separated by
    ``:``; ``*`` is everywhere) is trusted.
    """
    user = os.geteuid()
    trusted = {user, ROOT}
    sudo = os.environ.get("SUDO_UID", "")
    if user == ROOT and sudo.isascii() and sudo.isdigit():
        trusted.add(int(sudo))
    # What cannot be looked at is reported with its reason when it is used; RuntimeError: of links in a circle.
    with suppress(OSError, ValueError, RuntimeError):
        safe = [one for one in os.environ.get(SAFE_DIRECTORY, "").split(os.pathsep) if one]
        for status, place in ((path.lstat, _place(path)), (path.stat, path.resolve())):
            owner = status().st_uid
            if any(
                one == "*" or place.is_relative_to(Path(one).resolve()) or place.is_relative_to(_place(Path(one)))
                for one in safe
            ):
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
            "The home, or a file in it or named by it, belongs to a different user; nothing was read or changed",
            where=str(path),
            expected=only_own(),
            found=f"a file or folder of user {owner}",
            hint="run the command as this user; or, if you trust it: "
            f"export SLACKWATER_SAFE_DIRECTORY={safe_with(folder)}",
        )


def only_own() -> str:
    return f"one that user {os.geteuid()} or root owns"


def safe_with(folder: Path) -> str:
    return quoted(os.pathsep.join(filter(None, (os.environ.get(SAFE_DIRECTORY), str(folder)))))


def _place(path: Path) -> Path:
    return path.parent.resolve() / path.name
