"""Amazon S3 and what has its interface. ``s3a`` is Hadoop's name of it; ``s3n`` was."""

from __future__ import annotations

from slackwater.storage.protocols import OBJECT_STORE
from slackwater.storage.registry import FsspecKind

STORE = FsspecKind(
    ("s3", "s3a", "s3n"),
    OBJECT_STORE._replace(exclusive_create=True),
    protocol="s3",
    # With more, s3fs asks for the size before each read, to read what is above 50 MB in parts: a request more for each.
    options={"max_concurrency": 1},
    package="slackwater[s3]",
)
