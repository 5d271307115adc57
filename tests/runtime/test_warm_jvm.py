"""The JVM that commands of tests attach to is another one once it keeps much of what their contexts left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors.exceptions.captured import install_exception_handler

from tests.support import warm_jvm

pytestmark = pytest.mark.spark


def test_a_jvm_that_keeps_much_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As any test that starts a session in this process does, for the rest of the process.
    install_exception_handler()
    first = warm_jvm.attached(tmp_path)
    gateway = warm_jvm.warm_gateway()
    assert warm_jvm.attached(tmp_path) == first
    gateway.jvm.java.lang.System.setProperty("kept", "x" * (4 << 20))
    gateway.jvm.java.lang.System.gc()

    monkeypatch.setattr(warm_jvm, "KEPT_MIB_MAX", 1)
    second = warm_jvm.attached(tmp_path)
    assert gateway.proc.poll() is not None
    monkeypatch.undo()
    assert second["PYSPARK_GATEWAY_PORT"] != first["PYSPARK_GATEWAY_PORT"]
    assert warm_jvm.attached(tmp_path) == second
