"""Hadoop's ``core-site.xml`` and ``hdfs-site.xml`` in ``HADOOP_CONF_DIR``."""

import os
import re
from pathlib import Path
from xml.etree import ElementTree as ET

from slackwater.core.errors import UsageError

_FILES = ("core-site.xml", "hdfs-site.xml")
_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_NESTED_MAX = 20
"""The most nested substitutions, as in Hadoop's ``Configuration``."""


def hadoop_settings() -> dict[str, str]:
    """Hadoop's settings, empty without files. Raises UsageError (``hadoop-configuration``)."""
    home = os.environ.get("HADOOP_HOME")
    folder = os.environ.get("HADOOP_CONF_DIR") or (f"{home}/etc/hadoop" if home else "")
    found: dict[str, str] = {}
    # As in Hadoop, what hdfs-site.xml sets overrides core-site.xml.
    for name in _FILES if folder else ():
        file = Path(folder, name)
        try:
            properties = ET.parse(file).iter("property")  # noqa: S314 - the machine's own configuration
        except FileNotFoundError:
            continue
        except (OSError, ET.ParseError) as error:
            raise UsageError(
                "hadoop-configuration",
                f"The configuration of Hadoop cannot be parsed: {error}",
                where=str(file),
                hint="correct the file, or set HADOOP_CONF_DIR to a different folder",
            ) from error
        texts = ((one.findtext("name", "").strip(), one.findtext("value")) for one in properties)
        found |= {key: value.strip() for key, value in texts if key and value}
    values = found
    for _ in range(_NESTED_MAX):
        values = {
            name: _VARIABLE.sub(lambda match: found.get(match[1], match[0]), value) for name, value in values.items()
        }
    return values
