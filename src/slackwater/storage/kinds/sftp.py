"""A folder of another machine by SSH."""

from __future__ import annotations

from slackwater.storage.protocols import StoreTraits
from slackwater.storage.registry import FsspecKind

STORE = FsspecKind(
    ("sftp", "ssh"),
    # `posix-rename@openssh.com` replaces its target.
    StoreTraits(remote=True, atomic_rename=True, atomic_replace=True),
    protocol="sftp",
    package="paramiko",
)
