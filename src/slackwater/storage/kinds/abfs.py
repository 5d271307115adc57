"""Azure Data Lake Storage and Blob Storage.

adlfs takes account and credentials from the environment. Users provide Spark's connector (``hadoop-azure``) and its
settings.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.storage.protocols import OBJECT_STORE
from slackwater.storage.registry import FsspecKind

_KEYS = (
    "account_name",
    "account_key",
    "connection_string",
    "sas_token",
    "client_id",
    "client_secret",
    "tenant_id",
)


class AzureKind(FsspecKind):
    settings: Mapping[str, str] = {key: f"AZURE_STORAGE_{key.upper()}" for key in _KEYS}
    secrets = frozenset({"account_key", "connection_string", "sas_token", "client_secret"})

    def spark_uri(self, location: str) -> str:
        scheme, _, rest = location.partition(":")
        # `az` is a scheme of adlfs, which Hadoop does not have.
        return f"abfss:{rest}" if scheme == "az" else location


STORE = AzureKind(
    ("abfs", "abfss", "az"),
    # By `If-None-Match: *`.
    OBJECT_STORE._replace(exclusive_create=True),
    protocol="slackwater-abfs",
    package="adlfs",
    implementation="slackwater.storage.azure_filesystem.AzureFileSystem",
)
