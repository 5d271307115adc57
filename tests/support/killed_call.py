"""Runs a command of Slackwater and kills it when one of its functions is called, or when it returns.

python tests/support/killed_call.py call|return FILE:FUNCTION[:NUMBER] ARGUMENT..., the file as the end of its path,
FUNCTION or CLASS.FUNCTION, at the NUMBER-th time (default: the first). The file is run by its path, so that nothing
else of the tests is imported into the killed process.
"""

import os
import signal
import sys
import threading
from types import FrameType


def kill_at(event: str, file: str, function: str, number: int = 1) -> None:
    """Kill this process with SIGKILL at the ``number``-th such event of its threads; Spark calls sinks in others."""
    left = number

    def look(frame: FrameType, seen: str, _: object) -> None:
        nonlocal left
        code = frame.f_code
        if seen == event and function in {code.co_name, code.co_qualname} and code.co_filename.endswith(file):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(look)
    sys.setprofile(look)


def main() -> None:
    """Kill at the event that the first two arguments name; the others are the command's."""
    event, (file, function, *number) = sys.argv[1], sys.argv[2].split(":")
    from slackwater.cli.main import entry  # noqa: PLC0415 - imported before the hook, which slows down all calls

    sys.argv[1:] = sys.argv[3:]
    kill_at(event, file, function, *map(int, number))
    entry()


if __name__ == "__main__":
    main()
