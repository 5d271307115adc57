"""Adds byte code to the archives from which Spark's Python workers import pyspark and py4j.

python scripts/compile_workers.py FOLDER-OF-PACKAGES

The archives hold sources only, and Python keeps no byte code for modules of an archive: each worker and each reader of
a Python data source compiles them again when it starts.
"""

from __future__ import annotations

import marshal
import sys
import zipfile
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

_NEVER_COMPARED = (1).to_bytes(4, "little")
"""PEP 552: the byte code is of the source with this hash, and Python need not look whether it still is."""


def compile_archive(path: Path) -> None:
    """Replaces an archive by one with its sources and their byte code, which holds whatever the sources' times are."""
    part = path.with_name(f"{path.name}.part")
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(part, "w") as compiled:
        for name in archive.namelist():
            if name.endswith(".pyc"):
                continue
            source = archive.read(name)
            compiled.writestr(name, source, zipfile.ZIP_DEFLATED)
            if name.endswith(".py"):
                code = compile(source, f"{path}/{name}", "exec", dont_inherit=True)
                head = MAGIC_NUMBER + _NEVER_COMPARED + source_hash(source)
                compiled.writestr(f"{name}c", head + marshal.dumps(code), zipfile.ZIP_STORED)
    part.replace(path)


if __name__ == "__main__":
    for found in sorted(Path(sys.argv[1]).glob("pyspark/python/lib/*.zip")):
        compile_archive(found)
