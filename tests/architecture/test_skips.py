"""In CI a skip is a failure; elsewhere it is a skip. An expected failure is neither."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPPED = {
    "test": "import pytest\n@pytest.mark.skip(reason='no broker')\ndef test_it(): pass\n",
    "inside": "import pytest\ndef test_it(): pytest.skip('no broker')\n",
    "module": "import pytest\npytest.importorskip('no_such_package')\ndef test_it(): pass\n",
}
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail(strict=True)\ndef test_it(): assert False\n"


def _exit_code(folder: Path, root: Path, text: str, *, in_ci: bool) -> int:
    shutil.copy(root / "tests/conftest.py", folder)
    (folder / "test_one.py").write_text(text)
    environment = os.environ | {"CI": "true" if in_ci else ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", str(folder)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


@pytest.mark.parametrize("text", SKIPPED.values(), ids=SKIPPED)
def test_a_skip_fails_in_ci(tmp_path: Path, root: Path, text: str) -> None:
    assert _exit_code(tmp_path, root, text, in_ci=True) in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}


@pytest.mark.parametrize("text", [SKIPPED["test"], SKIPPED["inside"], EXPECTED_FAILURE])
def test_elsewhere_it_does_not(tmp_path: Path, root: Path, text: str) -> None:
    assert _exit_code(tmp_path, root, text, in_ci=False) == pytest.ExitCode.OK


def test_an_expected_failure_is_no_skip(tmp_path: Path, root: Path) -> None:
    assert _exit_code(tmp_path, root, EXPECTED_FAILURE, in_ci=True) == pytest.ExitCode.OK
