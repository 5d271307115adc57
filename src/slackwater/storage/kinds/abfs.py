"""Azure Data Lake Storage and Blob Storage."""

from __future__ import annotations

from slackwater.storage.protocols import OBJECT_STORE
from slackwater.storage.registry import FsspecKind

STORE = FsspecKind(("abfs", "abfss"), OBJECT_STORE, protocol="abfs", package="adlfs")
