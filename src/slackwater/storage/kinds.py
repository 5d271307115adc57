"""The kinds of stores that ``registry`` names."""

import getpass
import os
import re
from collections.abc import Mapping

from slackwater.core.errors import UsageError
from slackwater.storage.hadoop import hadoop_settings
from slackwater.storage.local import LOCAL, LocalStore
from slackwater.storage.open import local_path_of
from slackwater.storage.protocols import HADOOP, OBJECT_STORE, StoreTraits, WriteStore
from slackwater.storage.registry import FsspecKind, StoreKind, given


class LocalKind(StoreKind):
    """Directories of this machine, by path or ``file:`` URI."""

    def open(self, location: str, *, private: bool = False) -> WriteStore:
        return LocalStore(local_path_of(location) or location, private=private)


LOCAL_DISK = LocalKind(("file",), LOCAL)

# The memory of this process, for tests.
MEMORY = FsspecKind(
    ("memory",), StoreTraits(remote=False, atomic_rename=True, atomic_replace=True, durable=False), protocol="memory"
)


_CREDENTIALS = {
    "access_key_id": "spark.hadoop.fs.s3a.access.key",
    "secret_access_key": "spark.hadoop.fs.s3a.secret.key",
    "session_token": "spark.hadoop.fs.s3a.session.token",
}
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


class S3Kind(FsspecKind):
    """Amazon S3 and compatible stores. ``s3a`` is Hadoop's name for it; ``s3n`` was.

    All clients take endpoint, region and credentials from the environment, but Spark's S3A from the settings here.
    Credentials become session settings only if ``[storage.s3]`` names them; otherwise Spark's driver reads its
    environment.
    """

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


S3 = S3Kind(
    ("s3", "s3a", "s3n"),
    OBJECT_STORE._replace(exclusive_create=True),
    protocol="slackwater-s3",
    # With more, s3fs asks for the size before each read, to read what is above 50 MB in parts: a request more for each.
    options={"max_concurrency": 1},
    package="s3fs",
    implementation="slackwater.storage.s3_filesystem.S3FileSystem",
)


_KEYS = ("account_name", "account_key", "connection_string", "sas_token", "client_id", "client_secret", "tenant_id")


class AzureKind(FsspecKind):
    """Azure Data Lake Storage and Blob Storage.

    adlfs takes account and credentials from the environment. Users provide Spark's connector (``hadoop-azure``) and its
    settings.
    """

    settings: Mapping[str, str] = {key: f"AZURE_STORAGE_{key.upper()}" for key in _KEYS}
    secrets = frozenset({"account_key", "connection_string", "sas_token", "client_secret"})

    def spark_uri(self, location: str) -> str:
        scheme, _, rest = location.partition(":")
        # `az` is a scheme of adlfs, which Hadoop does not have.
        return f"abfss:{rest}" if scheme == "az" else location


ABFS = AzureKind(
    ("abfs", "abfss", "az"),
    # By `If-None-Match: *`.
    OBJECT_STORE._replace(exclusive_create=True),
    protocol="slackwater-abfs",
    package="adlfs",
    implementation="slackwater.storage.azure_filesystem.AzureFileSystem",
)


class GoogleKind(FsspecKind):
    """Google Cloud Storage.

    gcsfs and Google's clients take credentials, project and endpoint from the environment. Users provide Spark's
    connector and its settings.
    """

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


GS = GoogleKind(
    ("gs", "gcs"),
    # By `ifGenerationMatch=0`.
    OBJECT_STORE._replace(exclusive_create=True),
    protocol="slackwater-gs",
    package="gcsfs",
    implementation="slackwater.storage.gcs_filesystem.GcsFileSystem",
)


_UMASK = "fs.permissions.umask-mode"
_RIGHTS = {"r": 4, "w": 2, "x": 1}
_PORTS = {"http": 9870, "https": 9871}
"""The default ports of Hadoop 3 (hdfs-default.xml)."""


class HdfsKind(FsspecKind):
    """HDFS over HTTP (WebHDFS): without Java or Hadoop's native libraries.

    As Hadoop's user, or by Kerberos if Hadoop's configuration says so. The NameNode's HTTP address is from it,
    otherwise port 9870 of the URI's host.
    """

    def connection(self, location: str) -> tuple[str, dict[str, object]]:
        scheme, _, rest = location.partition(":")
        settings = hadoop_settings()
        authority, _, path = rest.removeprefix("//").partition("/")
        authority = authority or default_authority(settings)
        if not authority:
            raise UsageError(
                "location",
                "The location has no NameNode",
                where=location,
                expected="hdfs://host:port/path, or fs.defaultFS in the configuration of Hadoop",
                hint="write the host, or set HADOOP_CONF_DIR to the folder of core-site.xml",
            )
        https = scheme == "swebhdfs" or settings.get("dfs.http.policy") == "HTTPS_ONLY"
        options: dict[str, object] = {
            "addresses": http_addresses(scheme, authority, settings, https=https),
            "use_https": https,
            "umask": umask(settings),
        }
        if settings.get("hadoop.security.authentication") == "kerberos":
            options["kerberos"] = True
        else:
            options["user"] = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        return f"{self.protocol}://{authority}/{path}", options


def umask(settings: Mapping[str, str]) -> int:
    """The value of ``fs.permissions.umask-mode``, octal or as ``u=rwx,g=rwx,o=rx``.

    Raises UsageError (``hadoop-configuration``).
    """
    # 022 is the default of Hadoop (core-default.xml).
    text = settings.get(_UMASK, "022").strip()
    if re.fullmatch("[0-7]{1,4}", text):
        return int(text, 8) & 0o777
    given = dict(re.findall(r"([ugo])=([rwx]*)(?:,|$)", text))
    if not re.fullmatch("(?:[ugo]=[rwx]*(?:,|$))+", text) or given.keys() != set("ugo"):
        raise UsageError(
            "hadoop-configuration",
            f"{_UMASK} is not a umask",
            expected="an octal number such as 002, or u=rwx,g=rwx,o=rx",
            found=text,
            hint="correct the file, or set HADOOP_CONF_DIR to a different folder",
        )
    allowed = 0
    for who in "ugo":
        allowed = allowed << 3 | sum(_RIGHTS[right] for right in set(given[who]))
    return 0o777 & ~allowed


def default_authority(settings: Mapping[str, str]) -> str:
    return settings.get("fs.defaultFS", "").partition("://")[2].partition("/")[0]


def http_addresses(
    scheme: str, authority: str, settings: Mapping[str, str], *, https: bool
) -> tuple[tuple[str, int], ...]:
    kind = "https" if https else "http"
    key, port = f"dfs.namenode.{kind}-address", _PORTS[kind]
    if scheme != "hdfs" and ":" in authority:
        # The port of webhdfs: is that of HTTP.
        return (_host_and_port(authority, port),)
    nodes = [node.strip() for node in settings.get(f"dfs.ha.namenodes.{authority}", "").split(",")]
    found = [settings[name] for node in nodes if (name := f"{key}.{authority}.{node}") in settings]
    if found:
        return tuple(_host_and_port(one, port) for one in found)
    host = _host_and_port(authority, port)[0]
    # `dfs.namenode.http-address` is that of the default file system: another host has its own.
    if authority != default_authority(settings):
        return ((host, port),)
    configured = _host_and_port(settings.get(key, ""), port)
    # 0.0.0.0 is every interface of the server, and no address of it.
    return ((configured[0] if configured[0].strip("0.") else host, configured[1]),)


def _host_and_port(address: str, port: int) -> tuple[str, int]:
    host, colon, given = address.rpartition(":")
    return (host, int(given)) if colon and given.isdigit() else (address, port)


HDFS = HdfsKind(
    ("hdfs", "webhdfs", "swebhdfs"),
    # By a rename with options, which WebHDFS has: it replaces, or refuses, a target that exists.
    HADOOP._replace(atomic_replace=True, exclusive_create=True),
    protocol="slackwater-hdfs",
    package="requests urllib3",
    implementation="slackwater.storage.hdfs_filesystem.HdfsFileSystem",
)
