"""Java's ``DataInputStream``: big-endian numbers and ``writeUTF`` strings."""

from __future__ import annotations

import struct

from slackwater.core.errors import FormatError


class JavaReader:
    """Reads forward. Raises ``FormatError`` (``torn``) at the end."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def at_end(self) -> bool:
        return self.position >= len(self._data)

    def take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > len(self._data):
            found = f"{len(self._data) - self.position} bytes"
            raise FormatError("torn", "the file ends too early", expected=f"{count} more bytes", found=found)
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def short(self) -> int:
        return int(struct.unpack(">h", self.take(2))[0])

    def integer(self) -> int:
        return int(struct.unpack(">i", self.take(4))[0])

    def utf(self) -> str:
        """``readUTF``: a 16-bit length and modified UTF-8 (surrogates by themselves, NUL in two bytes)."""
        length = int(struct.unpack(">H", self.take(2))[0])
        raw = self.take(length)
        try:
            # Modified UTF-8 has a character above U+FFFF as two surrogates, which the way through UTF-16 joins.
            text = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise FormatError("foreign", "not a Java string", expected="modified UTF-8", found=str(error)) from error
