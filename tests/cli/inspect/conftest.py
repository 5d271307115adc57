"""The command is tried on S3 too."""

from __future__ import annotations

from tests.support.s3 import s3_endpoint, s3_location

__all__ = ["s3_endpoint", "s3_location"]
