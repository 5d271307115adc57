"""Amazon S3 and compatible stores. ``s3a`` is Hadoop's name for it; ``s3n`` was.

All clients take endpoint, region and credentials from the environment, but Spark's S3A from the settings here.
Credentials become session settings only if ``[storage.s3]`` names them; otherwise Spark's driver reads its environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from slackwater.storage.protocols import OBJECT_STORE
from slackwater.storage.registry import FsspecKind, given

_CREDENTIALS = {
    "access_key_id": "spark.hadoop.fs.s3a.access.key",
    "secret_access_key": "spark.hadoop.fs.s3a.secret.key",
    "session_token": "spark.hadoop.fs.s3a.session.token",
}
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


class S3Kind(FsspecKind):
    connector = "s3a"
    settings: Mapping[str, str] = {
        "access_key_id": "AWS_ACCESS_KEY_ID",
        "secret_access_key": "AWS_SECRET_ACCESS_KEY",
        "session_token": "AWS_SESSION_TOKEN",
        "endpoint": "AWS_ENDPOINT_URL",
        "region": "AWS_DEFAULT_REGION",
    }
    secrets = frozenset(_CREDENTIALS)

    def session_settings(self) -> Mapping[str, str]:
        settings = {f"spark.hadoop.fs.{scheme}.impl": _S3A for scheme in self.schemes}
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if endpoint:
            settings["spark.hadoop.fs.s3a.endpoint"] = endpoint
            # What is not Amazon's own has seldom a host name for each bucket.
            settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if region:
            settings["spark.hadoop.fs.s3a.endpoint.region"] = region
        named = given(self)
        return settings | {of: os.environ[self.settings[key]] for key, of in _CREDENTIALS.items() if key in named}

    def spark_uri(self, location: str) -> str:
        return f"s3a:{location.partition(':')[2]}"


STORE = S3Kind(
    ("s3", "s3a", "s3n"),
    OBJECT_STORE._replace(exclusive_create=True),
    protocol="slackwater-s3",
    # With more, s3fs asks for the size before each read, to read what is above 50 MB in parts: a request more for each.
    options={"max_concurrency": 1},
    package="s3fs",
    implementation="slackwater.storage.s3_filesystem.S3FileSystem",
)
