"""s3fs, which gives up on a server that does not answer and rejects a truncated answer."""

import errno
import time
from collections.abc import AsyncIterator
from contextvars import ContextVar
from functools import partial
from typing import Any

from fsspec.asyn import sync_wrapper
from s3fs import S3FileSystem as Base

NO_ANSWER_S = 15.0
"""A call that has waited this long for any answer is not sent again.

s3fs waits 5 s for a connection and 15 s for an answer, so a call ends after at most 32 s. By itself it would send the
call 25 times.
"""
_ATTEMPTS_MIN = 2
_started_s: ContextVar[float] = ContextVar("started_s", default=float("inf"))
"""The time at which the running call was first sent."""


class S3FileSystem(Base):
    """The file system of s3fs with its own protocol, so that other code of the process keeps its class for ``s3:``.

    fsspec finds a user's options under the other protocols. Answers of the server, such as throttling, are treated as
    in s3fs.
    """

    protocol = ("s3", "s3a", "slackwater-s3")

    async def _call_s3(self, method: str, *akwarglist: Any, **kwargs: Any) -> Any:
        client = await self.set_session()
        attempts_max = (client.meta.config.retries or {}).get("total_max_attempts")
        handler = partial(_end_without_answer, attempts_max)
        # botocore registers a handler once for each `unique_id`, however often this is called.
        client.meta.events.register_first("needs-retry.s3", handler, unique_id="slackwater-no-answer")
        _started_s.set(time.monotonic())
        try:
            answer = await super()._call_s3(method, *akwarglist, **kwargs)
        except FileNotFoundError as error:
            if not method.startswith("list_objects"):
                raise
            # A folder that is absent is listed as an empty one.
            raise OSError(errno.EIO, f"no such bucket, or the server is not S3: {error}") from error
        failed = answer.get("Errors") if method == "delete_objects" else None
        if failed:
            # The status is 200 even for objects that still exist, and s3fs ignores them.
            reason = f"{len(failed)} objects were not deleted; {failed[0].get('Key')}: {failed[0].get('Code')}"
            raise OSError(errno.EIO, reason)
        return answer

    call_s3 = sync_wrapper(_call_s3)

    async def _exists(self, path: str) -> bool:
        """Return whether a path exists; s3fs takes every error for the absence of a bucket.

        Raises OSError if unknown.
        """
        bucket, key, _ = self.split_path(self._strip_protocol(path))
        if key or not bucket:
            return bool(await super()._exists(path))
        try:
            await self._call_s3("head_bucket", Bucket=bucket)
        except FileNotFoundError:
            return False
        except PermissionError:
            # Who may read objects may still not be allowed to ask for the bucket.
            await self._call_s3("list_objects_v2", Bucket=bucket, MaxKeys=1)
        return True

    exists = sync_wrapper(_exists)

    async def _list_pages(self, method: str, **kwargs: Any) -> AsyncIterator[Any]:
        async for page in super()._list_pages(method, **kwargs):
            # An answer without a body is parsed as a page without names, and one without a length may be cut off to it.
            if "IsTruncated" not in page and "Name" not in page:
                raise OSError(errno.EIO, "the answer to a listing is empty")
            yield page


def _end_without_answer(
    attempts_max: int | None, *, attempts: int, caught_exception: Exception | None, **_: Any
) -> None:
    """Raise ConnectionError instead of retrying, unless the user has set a number of attempts."""
    if caught_exception is None:
        return
    waited_s = time.monotonic() - _started_s.get()
    if waited_s >= NO_ANSWER_S and attempts >= (attempts_max or _ATTEMPTS_MIN):
        reason = f"no answer after {attempts} attempts in {waited_s:.0f} s: {caught_exception}"
        raise ConnectionError(errno.EIO, reason) from caught_exception
