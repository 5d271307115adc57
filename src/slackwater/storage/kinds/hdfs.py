"""HDFS over HTTP (WebHDFS): without Java or Hadoop's native libraries.

The NameNode's HTTP address is from Hadoop's configuration, otherwise port 9870 of the URI's host.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping

from slackwater.core.errors import UsageError
from slackwater.storage.hadoop import hadoop_settings
from slackwater.storage.protocols import HADOOP
from slackwater.storage.registry import FsspecKind

_UMASK = "fs.permissions.umask-mode"
_RIGHTS = {"r": 4, "w": 2, "x": 1}
_PORTS = {"http": 9870, "https": 9871}
"""The default ports of Hadoop 3 (hdfs-default.xml)."""


class HdfsKind(FsspecKind):
    """Opened by WebHDFS as Hadoop's user, or by Kerberos if Hadoop's configuration says so."""

    def connection(self, location: str) -> tuple[str, dict[str, object]]:
        scheme, _, rest = location.partition(":")
        settings = hadoop_settings()
        authority, _, path = rest.removeprefix("//").partition("/")
        authority = authority or default_authority(settings)
        if not authority:
            raise UsageError(
                "location",
                "The location names no NameNode",
                where=location,
                expected="hdfs://host:port/path, or fs.defaultFS in the configuration of Hadoop",
                hint="write the host, or set HADOOP_CONF_DIR to the folder of core-site.xml",
            )
        https = scheme == "swebhdfs" or settings.get("dfs.http.policy") == "HTTPS_ONLY"
        options: dict[str, object] = {
            "addresses": http_addresses(scheme, authority, settings, https=https),
            "use_https": https,
            "umask": umask(settings),
        }
        if settings.get("hadoop.security.authentication") == "kerberos":
            options["kerberos"] = True
        else:
            options["user"] = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        return f"{self.protocol}://{authority}/{path}", options


def umask(settings: Mapping[str, str]) -> int:
    """The value of ``fs.permissions.umask-mode``, octal or as ``u=rwx,g=rwx,o=rx``.

    Raises UsageError (``hadoop-configuration``).
    """
    # 022 is the default of Hadoop (core-default.xml).
    text = settings.get(_UMASK, "022").strip()
    if re.fullmatch("[0-7]{1,4}", text):
        return int(text, 8) & 0o777
    given = dict(re.findall(r"([ugo])=([rwx]*)(?:,|$)", text))
    if not re.fullmatch("(?:[ugo]=[rwx]*(?:,|$))+", text) or given.keys() != set("ugo"):
        raise UsageError(
            "hadoop-configuration",
            f"{_UMASK} is no umask",
            expected="an octal number such as 002, or u=rwx,g=rwx,o=rx",
            found=text,
            hint="correct the file, or set HADOOP_CONF_DIR to another folder",
        )
    allowed = 0
    for who in "ugo":
        allowed = allowed << 3 | sum(_RIGHTS[right] for right in set(given[who]))
    return 0o777 & ~allowed


def default_authority(settings: Mapping[str, str]) -> str:
    return settings.get("fs.defaultFS", "").partition("://")[2].partition("/")[0]


def http_addresses(
    scheme: str, authority: str, settings: Mapping[str, str], *, https: bool
) -> tuple[tuple[str, int], ...]:
    kind = "https" if https else "http"
    key, port = f"dfs.namenode.{kind}-address", _PORTS[kind]
    if scheme != "hdfs" and ":" in authority:
        # The port of webhdfs: is that of HTTP.
        return (_host_and_port(authority, port),)
    nodes = [node.strip() for node in settings.get(f"dfs.ha.namenodes.{authority}", "").split(",")]
    found = [settings[name] for node in nodes if (name := f"{key}.{authority}.{node}") in settings]
    if found:
        return tuple(_host_and_port(one, port) for one in found)
    host = _host_and_port(authority, port)[0]
    # `dfs.namenode.http-address` is that of the default file system: another host has its own.
    if authority != default_authority(settings):
        return ((host, port),)
    configured = _host_and_port(settings.get(key, ""), port)
    # 0.0.0.0 is every interface of the server, and no address of it.
    return ((configured[0] if configured[0].strip("0.") else host, configured[1]),)


def _host_and_port(address: str, port: int) -> tuple[str, int]:
    host, colon, given = address.rpartition(":")
    return (host, int(given)) if colon and given.isdigit() else (address, port)


STORE = HdfsKind(
    ("hdfs", "webhdfs", "swebhdfs"),
    # By a rename with options, which WebHDFS has: it replaces, or refuses, a target that exists.
    HADOOP._replace(atomic_replace=True, exclusive_create=True),
    protocol="slackwater-hdfs",
    package="requests urllib3",
    implementation="slackwater.storage.hdfs_filesystem.HdfsFileSystem",
)
