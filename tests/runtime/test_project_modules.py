"""Where modules of a project are in the archive that executors import them from."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.runtime.session.session import module_path


def test_a_module_is_named_as_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = tmp_path / "jobs"
    monkeypatch.setattr("sys.path", [str(jobs), str(tmp_path)])
    assert module_path(jobs / "helpers.py") == "helpers.py"
    assert module_path(jobs / "pages" / "names.py") == "pages/names.py"
    assert module_path(tmp_path / "common" / "__init__.py") == "common/__init__.py"
    monkeypatch.setattr("sys.path", [])
    assert module_path(jobs / "helpers.py") == "helpers.py"
