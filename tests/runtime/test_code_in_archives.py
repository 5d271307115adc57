"""Code of a program that is in an archive, as ``spark-submit --py-files`` hands it over: without a JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from slackwater.runtime.loader import digest
from slackwater.runtime.program.code_reach import reach_of_file
from slackwater.runtime.program.code_scopes import imported_files, read_source
from slackwater.runtime.session.session import send_modules

PAGES = "from .least import LEAST\n\n\ndef big(visits):\n    return visits > LEAST\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    archive(tmp_path, 3)
    monkeypatch.syspath_prepend(tmp_path / "libs.zip")
    file = tmp_path / "packed_program.py"
    file.write_text("from packed_shop import pages\n\nprint(pages.big(4))\n")
    return file


def archive(folder: Path, least: int, comment: str = "") -> None:
    with ZipFile(folder / "libs.zip", "w") as opened:
        opened.writestr("packed_shop/__init__.py", "")
        opened.writestr("packed_shop/pages.py", comment + PAGES)
        opened.writestr("packed_shop/least.py", f"LEAST = {least}\n")
        opened.writestr("packed_shop/unused.py", f"LEAST = {least}\n")


def test_modules_in_an_archive_are_found_and_read(tmp_path: Path, program: Path) -> None:
    files = imported_files(program)
    names = [file.relative_to(tmp_path).as_posix() for file in files]
    assert sorted(names) == [f"libs.zip/packed_shop/{name}.py" for name in ("__init__", "least", "pages")]
    assert read_source(tmp_path / "libs.zip/packed_shop/least.py") == b"LEAST = 3\n"
    with pytest.raises(FileNotFoundError, match="absent"):
        read_source(tmp_path / "libs.zip/packed_shop/absent.py")


def test_changed_code_in_an_archive_changes_the_digests(tmp_path: Path, program: Path) -> None:
    code, meaning = digest(str(program)), reach_of_file(program)
    assert "big" in meaning.functions

    archive(tmp_path, 3, "# the same meaning\n")
    assert digest(str(program)) != code
    assert reach_of_file(program) == meaning

    archive(tmp_path, 4)
    assert digest(str(program)) != code
    assert reach_of_file(program).functions["big"] != meaning.functions["big"]


def test_what_is_no_archive_has_no_modules(tmp_path: Path, program: Path) -> None:
    (tmp_path / "libs.zip").write_text("no archive")
    assert imported_files(program) == ()


def test_workers_are_sent_no_module_of_an_archive(program: Path) -> None:
    # spark-submit has sent the archive; a part of a package in a second one would hide the rest.
    session: Any = object()
    send_modules(session, imported_files(program))
