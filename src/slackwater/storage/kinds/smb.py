"""A share of Windows or Samba."""

from __future__ import annotations

from slackwater.storage.protocols import HADOOP
from slackwater.storage.registry import FsspecKind

STORE = FsspecKind(("smb",), HADOOP, protocol="smb", package="smbprotocol")
