import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def source_files(root: Path) -> list[Path]:
    """Every Python module of the package."""
    return sorted((root / "src").rglob("*.py"))


@pytest.fixture(scope="session")
def tracked_files(root: Path) -> list[Path]:
    return files_in_git(root)


def files_in_git(root: Path) -> list[Path]:
    """The files of a checkout that git tracks and that exist."""
    # Without the option git refuses a checkout of another user, such as one that a container mounts.
    command = ["git", "-c", f"safe.directory={root}", "ls-files", "-z"]
    listing = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [path for name in listing.split("\0") if name and (path := root / name).is_file()]
