"""gcsfs by the JSON API of objects alone."""

from __future__ import annotations

from gcsfs.core import GCSFileSystem


class GcsFileSystem(GCSFileSystem):
    """Under a protocol of its own, so that the class which other code of the process gets for ``gs:`` is untouched.

    That class asks for the layout of each bucket over gRPC first, which takes a minute where only HTTP is let through
    (measured with gcsfs 2026.10), and uses calls that only hierarchical buckets have.
    """

    protocol = "slackwater-gs"
