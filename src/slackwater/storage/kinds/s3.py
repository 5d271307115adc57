"""Amazon S3 and what has its interface. ``s3a`` is Hadoop's name of it; ``s3n`` was.

Both clients take endpoint, region and credentials from the environment: s3fs by boto3's own rules, Spark's S3A by the
settings here. Credentials are no settings: Spark's driver reads them from its environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from slackwater.storage.protocols import OBJECT_STORE
from slackwater.storage.registry import FsspecKind

_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


class S3Kind(FsspecKind):
    """Read by s3fs, and by Spark through S3A."""

    connector = "s3a"

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
        return settings

    def spark_uri(self, location: str) -> str:
        return f"s3a:{location.partition(':')[2]}"


STORE = S3Kind(
    ("s3", "s3a", "s3n"),
    OBJECT_STORE._replace(exclusive_create=True),
    protocol="s3",
    # With more, s3fs asks for the size before each read, to read what is above 50 MB in parts: a request more for each.
    options={"max_concurrency": 1},
    package="slackwater[s3]",
)
