"""Spark's checkpoint files: a module for each kind, from bytes to frozen values and back. Nothing here opens files.

Malformed bytes raise ``FormatError`` with the code ``empty``, ``torn`` (its beginning is sound), ``foreign``,
``too-new`` (newer than Spark 4.3), ``too-large`` (decompressed) or ``checksum``.
"""
