"""For all tests: in CI a skipped test has not been passed, and no test sees the settings of whoever runs it."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

IN_CI = os.environ.get("CI") == "true"
_OURS = ("SLACKWATER_HOME", "SLACKWATER_LEDGER", "SLACKWATER_MASTER", "SLACKWATER_LOG_LEVEL", "SLACKWATER_LOG_FORMAT")


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _OURS:
        monkeypatch.delenv(name, raising=False)


def pytest_configure(config: pytest.Config) -> None:
    # A copy of this file alone, in another folder, is tested too.
    if (Path(__file__).parent / "support").is_dir():
        config.pluginmanager.import_plugin("tests.support.ledgers")


def pytest_collection_finish(session: pytest.Session) -> None:
    if any(item.get_closest_marker("spark") for item in session.items) and not session.config.option.collectonly:
        from tests.support.quick_jvm import use_quick_jvms  # noqa: PLC0415 - only tests with Spark need it

        use_quick_jvms()


def _fail_instead_of_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    # An expected failure is reported as skipped too, and is none.
    if IN_CI and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where every test must run: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_instead_of_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_instead_of_skip(report)
    return report
