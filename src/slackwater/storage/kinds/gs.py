"""Google Cloud Storage.

gcsfs and Google's clients take credentials, project and endpoint from the environment. Users provide Spark's connector
and its settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from slackwater.storage.protocols import OBJECT_STORE
from slackwater.storage.registry import FsspecKind


class GoogleKind(FsspecKind):
    settings: Mapping[str, str] = {
        "credentials_file": "GOOGLE_APPLICATION_CREDENTIALS",
        "project": "GOOGLE_CLOUD_PROJECT",
        "endpoint": "STORAGE_EMULATOR_HOST",
    }

    def connection(self, location: str) -> tuple[str, dict[str, object]]:
        url, options = super().connection(location)
        # An emulator takes no credentials; without this, gcsfs looks for some on the network first.
        return url, {**options, "token": "anon"} if os.environ.get("STORAGE_EMULATOR_HOST") else options

    def spark_uri(self, location: str) -> str:
        # `gcs` is a scheme of gcsfs; Google's connector for Hadoop has `gs` only.
        return f"gs:{location.partition(':')[2]}"


STORE = GoogleKind(
    ("gs", "gcs"),
    # By `ifGenerationMatch=0`.
    OBJECT_STORE._replace(exclusive_create=True),
    protocol="slackwater-gs",
    package="gcsfs",
    implementation="slackwater.storage.gcs_filesystem.GcsFileSystem",
)
