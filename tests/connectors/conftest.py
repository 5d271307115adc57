import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from slackwater.connectors.cache import Download, Jar

CONTENT = b"not a real jar"


@pytest.fixture
def small_jar() -> Jar:
    return Jar("org.example", "small", "1.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def serving() -> Callable[[bytes], Download]:
    def make(content: bytes) -> Download:
        def download(jars: Sequence[Jar], folder: Path) -> str:
            for jar in jars:
                (folder / jar.file_name).write_bytes(content)
            return "served"

        return download

    return make
