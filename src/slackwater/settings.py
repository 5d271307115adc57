"""Settings: ``slackwater.toml`` (found upward from the working directory), then ``SLACKWATER_*``, then flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slackwater.errors import SettingsError

FILE_NAME = "slackwater.toml"
KNOWN_KEYS = {"home", "ledger", "master", "log_level", "log_format", "connectors", "spark", "restarts"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a command works with. ``spark`` holds ``--conf`` settings, ``restarts`` the most restarts after failures."""

    home: Path
    ledger: str | None = None
    master: str | None = None
    log_level: str = "warning"
    log_format: str = "console"
    connectors: tuple[str, ...] = ()
    spark: Mapping[str, str] = field(default_factory=dict)
    restarts: int = 5


def load(
    *, home: str | None = None, start: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Settings:
    """Settings for a command started in ``start`` (default: the working directory).

    The home is ``home`` (the flag), else ``SLACKWATER_HOME``, else ``home`` in the file, else ``.slackwater`` beside
    it. Raises SettingsError where the file does not read or holds a key or value that cannot be used.
    """
    folder = (start or Path.cwd()).absolute()
    file = _find_file(folder)
    values = _read(file) if file else {}
    base = file.parent if file else folder
    return Settings(
        home=_home(home, environment, values, base, folder),
        ledger=environment.get("SLACKWATER_LEDGER") or _text(values, "ledger", file),
        master=environment.get("SLACKWATER_MASTER") or _text(values, "master", file),
        log_level=_choice(environment, values, "log_level", ("debug", "info", "warning", "error"), file),
        log_format=_choice(environment, values, "log_format", ("console", "json"), file),
        connectors=_texts(values, "connectors", file),
        spark={key: _spark_text(value) for key, value in _table(values, "spark", file).items()},
        restarts=_count(values, "restarts", 5, file),
    )


def _find_file(folder: Path) -> Path | None:
    for parent in (folder, *folder.parents):
        candidate = parent / FILE_NAME
        if candidate.is_file():
            return candidate
    return None


def _read(file: Path) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - most homes have no such file

    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(
            "settings-unreadable", f"The settings file does not read: {error}", where=str(file), hint=f"edit {file}"
        ) from error
    unknown = sorted(set(values) - KNOWN_KEYS)
    if unknown:
        raise SettingsError(
            "settings-key",
            "The settings file holds a key that means nothing",
            where=str(file),
            expected="one of " + ", ".join(sorted(KNOWN_KEYS)),
            found=", ".join(unknown),
            hint=f"edit {file}; settings of Spark stand in quotes below [spark]",
        )
    return values


def _home(
    flag: str | None, environment: Mapping[str, str], values: Mapping[str, Any], base: Path, folder: Path
) -> Path:
    chosen = flag or environment.get("SLACKWATER_HOME")
    place = chosen or _text(values, "home", base / FILE_NAME) or ".slackwater"
    home = ((folder if chosen else base) / Path(place).expanduser()).absolute()
    if home.is_file():
        raise SettingsError(
            "home-is-file",
            "The home cannot be a file",
            where=str(home),
            expected="a folder, or nothing yet",
            found="a file",
        )
    return home


def _choice(
    environment: Mapping[str, str], values: Mapping[str, Any], key: str, allowed: tuple[str, ...], file: Path | None
) -> str:
    default = "warning" if key == "log_level" else "console"
    value = environment.get(f"SLACKWATER_{key.upper()}") or values.get(key, default)
    if value not in allowed:
        _refuse(key, "one of " + ", ".join(allowed), value, file)
    return str(value)


def _text(values: Mapping[str, Any], key: str, file: Path | None) -> str | None:
    value = values.get(key)
    if value is not None and not isinstance(value, str):
        _refuse(key, "a text", value, file)
    return value


def _texts(values: Mapping[str, Any], key: str, file: Path | None) -> tuple[str, ...]:
    value = values.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        _refuse(key, "a list of texts", value, file)
    return tuple(value)


def _table(values: Mapping[str, Any], key: str, file: Path | None) -> Mapping[str, Any]:
    value = values.get(key, {})
    if not isinstance(value, dict) or any(isinstance(item, dict) for item in value.values()):
        _refuse(key, 'a table of quoted keys, such as "spark.sql.shuffle.partitions" = 4', value, file)
    return dict(value)


def _count(values: Mapping[str, Any], key: str, default: int, file: Path | None) -> int:
    value = values.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        _refuse(key, "a whole number, 0 or more", value, file)
    return int(value)


def _spark_text(value: object) -> str:
    """As Spark writes it: ``true``, not Python's ``True``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refuse(key: str, expected: str, found: object, file: Path | None) -> None:
    raise SettingsError(
        "settings-value",
        f"The setting {key} cannot be used",
        where=str(file) if file else f"SLACKWATER_{key.upper()}",
        expected=expected,
        found=repr(found),
        hint=f"edit {file}" if file else None,
    )
