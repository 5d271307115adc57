"""gcsfs with the JSON API of objects only; gives up when Google is unreachable."""

import asyncio
from typing import Any

from gcsfs.core import GCSFileSystem
from gcsfs.retry import retry_request

_WAITS_S = (0.5, 1.5)
"""Pauses before a connection that could not be made is tried again. gcsfs would try for 30 s."""


class GcsFileSystem(GCSFileSystem):
    """A ``GCSFileSystem`` with its own protocol, so that other code of the process keeps its class for ``gs:``.

    That class first asks for the layout of each bucket over gRPC, which takes a minute if only HTTP passes (measured
    with gcsfs 2026.10), and uses calls that only hierarchical buckets have.
    """

    protocol = "slackwater-gs"

    @property
    def on_google(self) -> bool:
        """Return False while credentials are looked up.

        Otherwise gcsfs asks the metadata server again for 15 s after Google's own search failed.
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
