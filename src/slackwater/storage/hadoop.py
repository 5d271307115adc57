"""Hadoop's ``core-site.xml`` and ``hdfs-site.xml`` in ``HADOOP_CONF_DIR``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from xml.parsers import expat

from slackwater.core.errors import UsageError

_FILES = ("core-site.xml", "hdfs-site.xml")
_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_NESTED_MAX = 20
"""The most nested substitutions, as in Hadoop's ``Configuration``."""


def hadoop_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Hadoop's settings, empty without files. Raises UsageError (``hadoop-configuration``)."""
    home = environment.get("HADOOP_HOME")
    folder = environment.get("HADOOP_CONF_DIR") or (f"{home}/etc/hadoop" if home else "")
    found: dict[str, str] = {}
    # As in Hadoop, what hdfs-site.xml sets overrides core-site.xml.
    for name in _FILES if folder else ():
        file, reader = Path(folder, name), _Reader()
        try:
            reader.parser.Parse(file.read_bytes(), True)
        except FileNotFoundError:
            continue
        except (OSError, expat.ExpatError) as error:
            raise UsageError(
                "hadoop-configuration",
                f"The configuration of Hadoop cannot be parsed: {error}",
                where=str(file),
                hint="correct the file, or set HADOOP_CONF_DIR to a different folder",
            ) from error
        found.update(reader.found)
    values = found
    for _ in range(_NESTED_MAX):
        values = {
            name: _VARIABLE.sub(lambda match: found.get(match[1], match[0]), value) for name, value in values.items()
        }
    return values


class _Reader:
    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._texts: dict[str, str] = {}
        self._inside = ""
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.CharacterDataHandler = self._text
        self.parser.EndElementHandler = self._end

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._inside = name
        if name == "property":
            self._texts = {}

    def _text(self, text: str) -> None:
        self._texts[self._inside] = self._texts.get(self._inside, "") + text

    def _end(self, name: str) -> None:
        self._inside = ""
        if name == "property" and self._texts.get("name", "").strip() and "value" in self._texts:
            self.found.append((self._texts["name"].strip(), self._texts["value"].strip()))
