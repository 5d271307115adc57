"""adlfs, with copies that are complete when the call returns."""

import asyncio
import errno

from adlfs import AzureBlobFileSystem
from fsspec.asyn import sync_wrapper

_ASKED_AGAIN_S = 0.2


class AzureFileSystem(AzureBlobFileSystem):
    """adlfs's class with its own protocol: other code of the process keeps its class for ``abfs:``."""

    protocol = "slackwater-abfs"

    @classmethod
    def _strip_protocol(cls, path: object) -> object:
        """Keep a ``?`` in a name, which adlfs takes for the start of a query; only a URI can have a query."""
        if isinstance(path, str) and not path.startswith(f"{cls.protocol}://"):
            return path.lstrip("/")
        return super()._strip_protocol(path)

    async def _cp_file(self, path1: str, path2: str, **kwargs: object) -> None:
        """Copy and wait: the service may finish a copy later, but a rename deletes the source next."""
        await super()._cp_file(path1, path2, **kwargs)
        container, blob, _ = self.split_path(path2)
        async with self.service_client.get_blob_client(container, blob) as client:
            copy = (await client.get_blob_properties()).copy
            while copy.status == "pending":
                await asyncio.sleep(_ASKED_AGAIN_S)
                copy = (await client.get_blob_properties()).copy
        if copy.status not in {None, "success"}:
            raise OSError(errno.EIO, f"the copy ended as {copy.status}: {copy.status_description}", path1)

    cp_file = sync_wrapper(_cp_file)
