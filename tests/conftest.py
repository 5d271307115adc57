"""For all tests: in CI a skipped test has not been passed, and no test sees the settings of whoever runs it."""

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

IN_CI = os.environ.get("CI") == "true"
LONGEST_FIRST = (
    "demo/test_demo.py",
    "audit/test_audit_on_spark.py",
    "conformance/test_operations.py",
    "restart/test_iceberg_catalog.py",
    "conformance/test_modes.py",
    "conformance/test_sinks.py",
    "conformance/test_joins.py",
    "conformance/test_sources.py",
    "conformance/test_state.py",
    "conformance/test_servers.py",
    "cluster/test_standalone.py",
    "restart/test_stores.py",
    "restart/test_delta.py",
    "restart/test_goals_on_state.py",
    "sinks/test_iceberg_on_spark.py",
    "restart/test_killed_apply.py",
    "runtime/verdict/test_typed.py",
    "operations/apply/test_kill_everywhere.py",
    "restart/test_kafka.py",
    "restart/test_changed_program.py",
    "sinks/test_kafka_killed.py",
    "sinks/test_postgres_killed.py",
    "demo/test_readme.py",
    "runtime/test_changed_programs.py",
    "runtime/test_stopping.py",
    "bad_input/test_bad_input.py",
    "restart/test_changed_meaning.py",
    "restart/test_adopted.py",
    "operations/apply/test_adopted.py",
    "restart/test_downstream.py",
    "docs/test_tutorial.py",
)
"""The files whose tests take minutes."""

_OURS = ("SLACKWATER_HOME", "SLACKWATER_LEDGER", "SLACKWATER_MASTER", "SLACKWATER_LOG_LEVEL", "SLACKWATER_LOG_FORMAT")


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _OURS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    # A copy of this file alone, in another folder, is tested too, there without the package.
    if known := sys.modules.get("slackwater.core.masking"):
        for name, value in vars(known.KnownSecrets()).items():
            monkeypatch.setattr(known.KNOWN_SECRETS, name, value)


def pytest_configure(config: pytest.Config) -> None:
    # A copy of this file alone, in another folder, is tested too.
    if (Path(__file__).parent / "support").is_dir():
        # A session's fixture that several modules import is made once for each of them, and a plugin's once.
        for plugin in ("ledgers", "memory", "s3", "object_stores", "hdfs"):
            config.pluginmanager.import_plugin(f"tests.support.{plugin}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side, files are handed out in the order of their tests: a long one at the end leaves a core idle."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    folder = Path(__file__).parent
    ranks = {folder / name: rank for rank, name in enumerate(LONGEST_FIRST)}
    slow = {item.path for item in items if item.get_closest_marker("spark") or item.get_closest_marker("kafka")}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks) if item.path in slow else len(ranks) + 1))


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
