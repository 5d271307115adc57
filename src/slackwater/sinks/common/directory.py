"""The output directory that a user names: which names can be used, and as what Spark is given them."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from slackwater.core.errors import PipelineError
from slackwater.core.masking import mask
from slackwater.storage.open import check_location, is_uri


def directory(path: object, example: str) -> str:
    """The output directory as a string; ``example`` shows in a hint how to write it. Raises PipelineError."""
    found = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(found, str) or not found.strip() or found[0] == "~" or not _is_location(found):
        raise PipelineError(
            "sink-path",
            "The sink cannot write to this output directory",
            expected="a path or URI as a string or pathlib.Path, without ~",
            found=repr(path),
            hint=f'such as {example}; pathlib.Path("~/out").expanduser() expands ~',
        )
    # Hadoop decodes no URI: file:///a%20b is the folder "a%20b" for Spark and "a b" for everything else.
    reserved = " and ".join(character for character in "%?#" if character in found) if is_uri(found) else ""
    if reserved:
        raise PipelineError(
            "sink-path",
            f"A URI with {reserved} names one output directory for Spark and another for other programs",
            expected=f"a plain path, or a URI without {reserved}",
            found=repr(found),
            hint="give a plain path, in which these characters have no special meaning",
        )
    if is_uri(found) and mask(found) == found:
        # One with a password in it is refused with the stream's name, when that is known.
        check_location(found)
    return found


def absolute(path: str) -> str:
    """The output directory as the user named it: an absolute path, or the URI."""
    if is_uri(path):
        return path
    # abspath and not resolve: symlinks stay as the user wrote them, because Spark is given this path.
    return os.path.abspath(path)  # noqa: PTH100 - as above


def _is_location(path: str) -> bool:
    """Whether Java can be given the string: no NUL, no lone surrogate, no URI that cannot be split."""
    try:
        urlsplit(path)
        path.encode()
    except ValueError:
        return False
    return "\0" not in path
