"""Real checkpoints, written by Spark itself: an archive for each version, unpacked once for a test session."""

import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path

VERSIONS = ("3.5.9", "4.0.5", "4.3.0")

_ROOT = Path(__file__).resolve().parents[2]
_FULL = _ROOT.parent / "shared" / "corpus"
_SMALL = _ROOT / "tests" / "data" / "corpus"


def corpus_case(version: str, case: str, folder: Path) -> Path:
    target = folder / version / case
    shutil.copytree(_unpacked(version) / case, target)
    return target


def corpus_cases(version: str) -> list[str]:
    return sorted(path.name for path in _unpacked(version).iterdir() if path.is_dir())


def corpus_folder(version: str, case: str) -> Path:
    """One case where it was unpacked, for tests that only read it."""
    return _unpacked(version) / case


def kept_cases(version: str) -> frozenset[str]:
    """The cases in the repository's own archive, which is all that another machine has."""
    with tarfile.open(_SMALL / f"{version}.tar.xz") as tar:
        return frozenset(name.split("/")[1] for name in tar.getnames() if "/" in name)


@cache
def _unpacked(version: str) -> Path:
    name = f"{version}.tar.xz"
    # The small copy in the repository holds the cases that the tests name, for machines without the whole corpus.
    archive = next((path for path in (_FULL / name, _SMALL / name) if path.is_file()), None)
    if archive is None:
        raise FileNotFoundError(f"no corpus of Spark {version} in {_FULL} or {_SMALL}")
    folder = tempfile.TemporaryDirectory(prefix=f"corpus-{version}-", ignore_cleanup_errors=True)
    _keep.append(folder)
    with tarfile.open(archive) as tar:
        # Python before 3.11.4, which is Debian 12's, has no filters and ignores this.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder.name)  # noqa: S202 - our own archive
    return Path(folder.name) / version


_keep: list[tempfile.TemporaryDirectory[str]] = []
"""Unpacked corpora live as long as the test session."""
