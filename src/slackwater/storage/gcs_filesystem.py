"""gcsfs by the JSON API of objects alone, which ends where Google cannot be reached."""

from __future__ import annotations

import asyncio
from typing import Any

from gcsfs.core import GCSFileSystem
from gcsfs.retry import retry_request

_WAITS_S = (0.5, 1.5)
"""Pauses before a connection that could not be made is tried again. gcsfs would try for 30 s."""


class GcsFileSystem(GCSFileSystem):
    """Under a protocol of its own, so that the class which other code of the process gets for ``gs:`` is untouched.

    That class asks for the layout of each bucket over gRPC first, which takes a minute where only HTTP is let through
    (measured with gcsfs 2026.10), and uses calls that only hierarchical buckets have.
    """

    protocol = "slackwater-gs"

    @property
    def on_google(self) -> bool:
        """As gcsfs has it, but not while credentials are looked for.

        gcsfs would then ask the metadata server once more, for 15 s, where Google's own search has not found it.
        """
        return hasattr(self, "credentials") and bool(super().on_google)

    async def _answered(self, *args: Any, **kwargs: Any) -> Any:
        waits = iter(_WAITS_S)
        while True:
            try:
                return await super()._request.__wrapped__(self, *args, **kwargs)
            except OSError as error:
                # Of a connection that could not be made aiohttp has the cause (`ClientConnectorError.os_error`).
                if not hasattr(error, "os_error"):
                    raise
                wait_s = next(waits, None)
                if wait_s is None:
                    raise OSError(error.errno, error.strerror) from error
                await asyncio.sleep(wait_s)

    # An answer of the server, throttling above all, is treated as gcsfs treats it.
    _request = retry_request(retries=GCSFileSystem.retries)(_answered)
