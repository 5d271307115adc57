"""What Spark writes into a checkpoint: one module for each kind of file, from bytes to frozen values and back.

Nothing here opens a file or knows its path. A module that cannot parse its bytes raises ``FormatError`` with
one of the codes ``empty``, ``torn`` (its beginning is sound), ``foreign`` (it is something else), ``too-new`` (its
version is above those of Spark 4.3), ``too-large`` (it decompresses to more than the limit) or ``checksum``; readers of
a checkpoint turn that into damage and continue.
"""
