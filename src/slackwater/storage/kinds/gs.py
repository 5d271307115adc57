"""Google Cloud Storage."""

from __future__ import annotations

from slackwater.storage.protocols import OBJECT_STORE
from slackwater.storage.registry import FsspecKind

STORE = FsspecKind(("gs", "gcs"), OBJECT_STORE, protocol="gs", package="gcsfs")
