"""Writes the hashes that are still empty into the list of connector jars, from the files themselves."""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from pathlib import Path

from slackwater.connectors.cache import Jar, by_ivy

LIST = Path(__file__).resolve().parent.parent / "src/slackwater/connectors/locked.toml"
UNLOCKED = re.compile(r'\["([^":]+):([^":]+):([^":]+)", ""\]')


def main() -> int:
    text = LIST.read_text(encoding="utf-8")
    unlocked = [Jar(group, artifact, version, "") for group, artifact, version in sorted(set(UNLOCKED.findall(text)))]
    missing = []
    for jar in unlocked:
        with tempfile.TemporaryDirectory() as folder:
            # One at a time: Ivy would evict one of two versions of the same artifact.
            by_ivy([jar], Path(folder))
            file = Path(folder, jar.file_name)
            if not file.is_file():
                missing.append(jar.coordinate)
                continue
            sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        text = text.replace(f'["{jar.coordinate}", ""]', f'["{jar.coordinate}", "{sha256}"]')
        print(jar.coordinate, sha256)
    LIST.write_text(text, encoding="utf-8")
    for coordinate in missing:
        print(f"not to be had: {coordinate}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
