"""HDFS over HTTP as an fsspec file system; imported only for a location on HDFS.

fsspec's own class returns a DataNode's error text as file content, takes every error for "absent" in ``exists``, omits
folders from ``find`` whose listing failed, does not notice a refused rename or a rename whose answer was lost, and
never stops waiting.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self
from urllib.parse import quote

import requests
from fsspec.implementations.webhdfs import WebHDFile, WebHDFS
from requests.adapters import HTTPAdapter
from urllib3.exceptions import ConnectTimeoutError, ReadTimeoutError
from urllib3.util import Retry

from slackwater.storage.replacement import temporary_path

CONNECTION_S = 10.0
READ_S = 30.0
"""The timeout for each part of a read request's answer. An unanswered request is not sent again."""
CHANGE_S = 60.0
"""As ``READ_S``, for a request that changes something: a NameNode deletes a large folder before it answers."""
_NOT_DONE = frozenset({"SafeModeException", "RetriableException", "StandbyException"})
"""Errors of a NameNode that has not executed the request: it is always safe to send it again."""
PAUSES_S = (0.5, 1.0, 2.0)
_LISTED_AT_ONCE = 8
_ERRORS: Mapping[str, type[OSError]] = {
    "FileNotFoundException": FileNotFoundError,
    "FileAlreadyExistsException": FileExistsError,
    "ParentNotDirectoryException": NotADirectoryError,
    "AccessControlException": PermissionError,
    "SecurityException": PermissionError,
}
_NUMBERS: Mapping[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    NotADirectoryError: errno.ENOTDIR,
    PermissionError: errno.EACCES,
}


class HdfsFileSystem(WebHDFS):
    """A file system on HDFS. ``addresses``: host and port of each NameNode; the active NameNode answers.

    ``umask``: a NameNode knows only its own machine's.
    """

    def __init__(self, addresses: Sequence[tuple[str, int]], umask: int = 0o022, **options: Any) -> None:
        self.addresses = tuple(addresses)
        host, port = addresses[0]
        super().__init__(host, port, **options)
        self._for_files = f"{0o666 & ~umask:o}"
        self._for_folders = f"{0o777 & ~umask:o}"
        scheme = self.url.partition(":")[0]
        self._urls = [f"{scheme}://{host}:{port}/webhdfs/v1" for host, port in addresses]

    def _connect(self) -> None:
        super()._connect()
        # What was not answered is sent again: twice is as once, but for a rename.
        retry = _Retry(total=3, connect=2, backoff_factor=0.3, status_forcelist=(502, 503, 504), raise_on_status=False)
        adapter = _Adapter(max_retries=retry, pool_maxsize=32)
        self.session.mount("http://", adapter)
        self.session.mount("https://", adapter)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        # A name may have any character that ends the path of a URL.
        _, separator, rest = path.partition("://")
        return (f"/{rest.partition('/')[2]}" if separator else path).rstrip("/") or "/"

    @staticmethod
    def _get_kwargs_from_urls(_: str) -> dict[str, Any]:
        # fsspec would add host and port of the URI, which may name a name service; `addresses` has the NameNodes.
        return {}

    def _call(
        self,
        op: str,
        method: str = "get",
        path: str | None = None,
        data: Any = None,
        redirect: bool = True,
        **query: Any,
    ) -> requests.Response:
        place = quote(self._strip_protocol(path) if path else "", safe="/")
        parameters = {**query, **self.pars, "op": op.upper()}
        failure: OSError = OSError(errno.EIO, "no answer", path)
        started_s = time.monotonic()
        for pause_s in (*PAUSES_S, None):
            for url in tuple(self._urls):
                try:
                    answer = self._sent(method, f"{url}{place}", params=parameters, data=data, allow_redirects=redirect)
                except ConnectionError as error:
                    # Not to another NameNode: if the rename was made, that one finds its source missing.
                    if len(self._urls) == 1 or (op == "RENAME" and isinstance(error, _NoAnswerError)):
                        raise
                    failure = error
                    self._ask_last(url)
                    continue
                if answer.ok or _exception(answer)[0] not in _NOT_DONE:
                    # The first request may have been done, and this error be that the second one found no source: see
                    # `_rename`.
                    retries = getattr(answer.raw, "retries", None)
                    if op == "RENAME" and not answer.ok and retries and retries.history:
                        raise _NoAnswerError(errno.EIO, f"only the second request was answered: {answer.text}", path)
                    return _checked(answer, path)
                failure = _failure(answer, path)
                self._ask_last(url)
            # Safe mode is waited for; a server that has not answered for this long is not asked again.
            if isinstance(failure, ConnectionError) and time.monotonic() - started_s >= READ_S:
                raise failure
            if pause_s is not None:
                time.sleep(pause_s)
        raise failure

    def _ask_last(self, url: str) -> None:
        self._urls = [*(one for one in self._urls if one != url), url]

    def _sent(self, method: str, url: str, **options: Any) -> requests.Response:
        """Send a request. Errors of requests contain the URL, which may contain a token."""
        try:
            answer: requests.Response = self.session.request(method.upper(), url, **options)
        except requests.RequestException as error:
            reason = getattr(error.args[0], "reason", "") if error.args else ""
            kind = ConnectionError if isinstance(reason, ConnectTimeoutError) else _NoAnswerError
            text = f"no answer from {'/'.join(url.split('/')[:3])}: {reason or type(error).__name__}"
            raise kind(errno.EIO, text) from None
        return answer

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return self._described(_json(self._call("GETFILESTATUS", path=path), path)["FileStatus"], path)

    def ls(self, path: str, detail: bool = False, **_: Any) -> list[Any]:
        found = _json(self._call("LISTSTATUS", path=path), path)["FileStatuses"]["FileStatus"]
        listed = [self._described(one, f"{path.rstrip('/')}/{one['pathSuffix']}".rstrip("/")) for one in found]
        return listed if detail else [one["name"] for one in listed]

    def _described(self, status: dict[str, Any], path: str) -> dict[str, Any]:
        described: dict[str, Any] = {**self._process_info(status), "name": path}
        described["mtime"] = status["modificationTime"] / 1000
        return described

    def exists(self, path: str, **_: Any) -> bool:
        try:
            self._call("GETFILESTATUS", path=path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def find(self, path: str, detail: bool = False, **_: Any) -> Any:
        """The files below a folder. A folder that vanishes meanwhile is empty; any other error is raised."""
        found: dict[str, Any] = {}
        pending = [path]
        with ThreadPoolExecutor(_LISTED_AT_ONCE, "slackwater-hdfs") as pool:
            while pending:
                listed = [one for items in pool.map(self._listed, pending) for one in items]
                pending = [one["name"] for one in listed if one["type"] == "directory"]
                found |= {one["name"]: one for one in listed if one["type"] != "directory"}
        return found if detail else list(found)

    def _listed(self, path: str) -> list[dict[str, Any]]:
        try:
            return self.ls(path, detail=True)
        except FileNotFoundError:
            return []

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        limits: dict[str, Any] = {"offset": start or 0}
        if end is not None:
            limits["length"] = end - limits["offset"]
        return self._call("OPEN", path=path, **limits).content

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        if mode != "create":
            self._create(path, value)
            return
        # CREATE would show the file before its content is complete; the rename refuses an existing target in one step.
        temporary = temporary_path(path)
        try:
            self._create(temporary, value)
            self.mv(temporary, path)
        except BaseException:
            self.rm_file(temporary)
            raise

    def mkdir(self, path: str, **_: Any) -> None:
        self._call("MKDIRS", "put", path, permission=self._for_folders)

    def _create(self, path: str, value: bytes) -> None:
        query = {"overwrite": "true", "permission": self._for_files}
        # The NameNode answers with the address of a DataNode, to which a second request sends the content.
        place = self._call("CREATE", "put", path, redirect=False, **query).headers["Location"]
        headers = {"content-type": "application/octet-stream"}
        _checked(self._sent("put", self._apply_proxy(place), data=value, headers=headers), path)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Move a file. Raises FileExistsError if the target exists, atomically on the NameNode."""
        self._rename(path1, path2, "NONE")

    def replace(self, path1: str, path2: str) -> None:
        """Rename a file; atomically replaces a file at the target."""
        self._rename(path1, path2, "OVERWRITE")

    def _rename(self, path1: str, path2: str, options: str) -> None:
        try:
            answer = self._call("RENAME", "put", path1, destination=path2, renameoptions=options)
        except _NoAnswerError:
            # Without an answer, the rename was made where its source is absent and its target is there.
            if self.exists(path1) or not self.exists(path2):
                raise
            return
        # A NameNode answers a rename with options without a body; HttpFS ignores the options and answers as to a plain
        # rename.
        if answer.content.strip() and answer.json().get("boolean") is False:
            raise OSError(errno.EIO, f"not renamed to {path2}: the server has no rename with options", path1)

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **options: Any) -> HdfsFile:
        if mode == "wb":
            options["permission"] = self._for_files
        return HdfsFile(self, path, mode=mode, block_size=block_size or self.blocksize, tempdir="", **options)


class HdfsFile(WebHDFile):
    def _fetch_range(self, start: int, end: int) -> bytes:
        found: bytes = self.fs.cat_file(self.path, start, min(end, self.size)) if start < min(end, self.size) else b""
        return found


class _NoAnswerError(ConnectionError):
    """A request was sent, and may have been executed, but was not answered."""


class _Adapter(HTTPAdapter):
    """Sets timeouts: requests waits for ever by default."""

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        answer_s = READ_S if arguments[0].method == "GET" else CHANGE_S
        return super().send(*arguments, **{**options, "timeout": options.get("timeout") or (CONNECTION_S, answer_s)})


class _Retry(Retry):
    """Does not retry a server that accepts a connection but does not answer."""

    def increment(self, *arguments: Any, **options: Any) -> Self:
        error = options.get("error")
        if isinstance(error, ReadTimeoutError):
            raise error
        return super().increment(*arguments, **options)


def _exception(answer: requests.Response) -> tuple[str, str]:
    try:
        found = answer.json()["RemoteException"]
        return str(found["exception"]), str(found["message"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status_code}", answer.reason or ""


def _json(answer: requests.Response, path: str) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise OSError(errno.EIO, "the answer of the NameNode is cut off", path) from error


def _checked(answer: requests.Response, path: str | None) -> requests.Response:
    if not answer.ok:
        raise _failure(answer, path)
    return answer


def _failure(answer: requests.Response, path: str | None) -> OSError:
    name, message = _exception(answer)
    kind = NotADirectoryError if "is not a directory" in message else _ERRORS.get(name, OSError)
    return kind(_NUMBERS.get(kind, errno.EIO), f"{name}: {message}", path)
