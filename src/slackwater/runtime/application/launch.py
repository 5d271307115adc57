"""Runs the code of an application as ``python FILE ARGUMENTS`` or ``python -m MODULE ARGUMENTS`` would."""

from __future__ import annotations

import runpy
import sys

from slackwater.core.reference import split_reference
from slackwater.runtime.loader import locate


def run_code(reference: str) -> None:
    """Run it to its end. Raises whatever it raises, SystemExit too."""
    _, arguments = split_reference(reference)
    file, module = locate(reference)
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(file), *arguments]
    try:
        if module is not None:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(file.parent))
            runpy.run_path(str(file), run_name="__main__")
    finally:
        sys.argv = argv
        sys.path[:] = path
