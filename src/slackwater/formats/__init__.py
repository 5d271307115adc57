"""What Spark writes into a checkpoint: one module for each kind of file, from bytes to frozen values and back.

Nothing here opens a file or knows where one lies. A module that cannot make sense of its bytes raises ``FormatError``
with one of the codes ``empty``, ``torn`` (it begins well), ``foreign`` (it is something else), ``too-new`` (its version
is above those of Spark 4.3) or ``checksum``; whoever reads a checkpoint turns that into damage and goes on.
"""
