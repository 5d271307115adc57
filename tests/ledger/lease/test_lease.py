import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slackwater.core.errors import LeaseHeld
from slackwater.core.records import Holder, LeaseRecord
from slackwater.ledger.lease import Lease, is_alive, this_process, wait_until_free
from slackwater.ledger.ledger import Ledger
from tests.ledger.programs import Program, start_program
from tests.support.errors import raises_code
from tests.support.ledgers import STREAM, Clock

ELSEWHERE = Holder("elsewhere", pid=1, pid_started=1, pid_space="another boot")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "streams" / "weather" / "hourly"


@pytest.fixture
def started(ledger_url: str, folder: Path) -> Iterator[Callable[[str], Program]]:
    """Starts a program with the ledger, the stream and its folder; ends it with the test."""
    programs: list[Program] = []

    def start(name: str) -> Program:
        programs.append(start_program(name, ledger_url, STREAM, str(folder)))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()


def test_a_second_writer_sees_who_holds_the_lease_since_when(ledger: Ledger, folder: Path) -> None:
    with Lease.acquire(ledger, STREAM, folder, "run"):
        with pytest.raises(LeaseHeld) as caught:
            Lease.acquire(ledger, STREAM, folder, "apply")
        here = this_process()
        assert caught.value.code == "lease-held"
        assert caught.value.message == (
            f"weather/hourly is held by pid {here.pid} on {here.host} for run, since 2023-11-14 22:13:20 UTC"
        )
        assert caught.value.hint == "slackwater stop weather/hourly"


def test_a_released_lease_goes_to_the_next_with_a_higher_fence(ledger: Ledger, folder: Path) -> None:
    fences = []
    for _ in range(3):
        with Lease.acquire(ledger, STREAM, folder, "run") as lease:
            fences.append(lease.fence)
    assert fences == [1, 2, 3]
    released = ledger.lease(STREAM)
    assert released is not None
    assert (released.holder, released.fence) == (None, 3)


def test_the_file_repeats_the_row(ledger: Ledger, folder: Path, clock: Clock) -> None:
    lease = Lease.acquire(ledger, STREAM, folder, "run")
    clock.forward(10)
    lease.heartbeat()
    held = json.loads((folder / "lease.json").read_text())
    assert (held["fence"], held["purpose"], held["heartbeat_ms"]) == (1, "run", clock.now_ms)
    assert held["holder"]["pid"] == os.getpid()
    lease.release()
    assert json.loads((folder / "lease.json").read_text())["holder"] is None


def test_of_those_who_ask_at_once_exactly_one_wins(started: Callable[[str], Program], ledger: Ledger) -> None:
    programs = [started("take_lease") for _ in range(6)]
    assert [program.read_line() for program in programs] == ["ready"] * 6
    for program in programs:
        program.write_line("go")
    messages = sorted(program.read_line() for program in programs)
    assert messages == ["fence 1", *["lease-held"] * 5]
    held = ledger.lease(STREAM)
    assert held is not None
    assert held.holder is not None
    assert held.holder.pid in {program.pid for program in programs}


def test_threads_that_ask_at_once_do_not_both_win(ledger: Ledger, folder: Path) -> None:
    start, won = threading.Barrier(4), []

    def ask() -> None:
        start.wait()
        with contextlib.suppress(LeaseHeld):
            won.append(Lease.acquire(ledger, STREAM, folder, "run"))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [lease.fence for lease in won] == [1]


def test_a_killed_driver_holds_the_lease_until_its_jvm_has_exited(
    started: Callable[[str], Program], ledger: Ledger, folder: Path
) -> None:
    driver = started("driver_with_jvm")
    jvm_pid = int(driver.read_line())
    driver.kill(reap=False)
    _wait_until(lambda: _refusal(ledger) == "only its JVM")
    with pytest.raises(LeaseHeld) as caught:
        Lease.acquire(ledger, STREAM, folder, "apply")
    assert f"the JVM (pid {jvm_pid})" in caught.value.message
    assert f"kill {jvm_pid}" in str(caught.value.hint)
    os.kill(jvm_pid, signal.SIGKILL)
    _wait_until(lambda: _refusal(ledger) == "free")
    assert Lease.acquire(ledger, STREAM, folder, "apply").fence == 2


def test_waiting_for_the_jvm_of_a_killed_driver_is_messages_once(
    started: Callable[[str], Program], ledger: Ledger
) -> None:
    driver = started("driver_with_jvm")
    jvm_pid = int(driver.read_line())
    driver.kill()
    messages: list[str] = []

    def say(line: str) -> None:
        messages.append(line)
        os.kill(jvm_pid, signal.SIGKILL)

    wait_until_free(ledger, STREAM, wait_s=20, say=say)
    assert messages == [
        f"the driver of weather/hourly has exited, but its JVM (pid {jvm_pid}) still runs; waiting up to 20 s"
    ]


def test_waiting_ends_where_the_jvm_does_not(started: Callable[[str], Program], ledger: Ledger) -> None:
    driver = started("driver_with_jvm")
    jvm_pid = int(driver.read_line())
    driver.kill()
    try:
        with pytest.raises(LeaseHeld) as caught:
            wait_until_free(ledger, STREAM, wait_s=0.3, say=lambda _: None)
    finally:
        os.kill(jvm_pid, signal.SIGKILL)
    assert caught.value.code == "lease-held"


def test_nobody_waits_for_a_living_holder(ledger: Ledger, folder: Path) -> None:
    messages: list[str] = []
    with Lease.acquire(ledger, STREAM, folder, "run"), pytest.raises(LeaseHeld):
        wait_until_free(ledger, STREAM, wait_s=60, say=messages.append)
    wait_until_free(ledger, STREAM, wait_s=60, say=messages.append)
    assert messages == []


def test_a_living_holder_on_this_host_keeps_the_lease_however_old_its_heartbeat(
    ledger: Ledger, folder: Path, clock: Clock
) -> None:
    with Lease.acquire(ledger, STREAM, folder, "run"):
        clock.forward(3600)
        with pytest.raises(LeaseHeld):
            Lease.acquire(ledger, STREAM, folder, "apply")


def test_a_recycled_process_id_is_not_the_holder(ledger: Ledger, folder: Path, clock: Clock) -> None:
    here = this_process()
    _held_by(ledger, here._replace(pid_started=here.pid_started - 1), clock)
    assert Lease.acquire(ledger, STREAM, folder, "apply").fence == 5


def test_a_holder_on_another_host_is_dead_once_its_heartbeat_has_expired(
    ledger: Ledger, folder: Path, clock: Clock
) -> None:
    _held_by(ledger, ELSEWHERE, clock)
    clock.forward(30)
    with pytest.raises(LeaseHeld) as caught:
        Lease.acquire(ledger, STREAM, folder, "apply")
    assert "its last heartbeat was at 2023-11-14 22:13:20 UTC" in str(caught.value.hint)
    clock.forward(0.001)
    assert Lease.acquire(ledger, STREAM, folder, "apply").fence == 5


@pytest.mark.parametrize("ahead_ms", [3_600_000, -3_600_000])
@pytest.mark.parametrize("alive", [False, True])
def test_a_holder_with_another_clock_is_watched_by_the_clock_here(
    ledger: Ledger, folder: Path, clock: Clock, ahead_ms: int, *, alive: bool
) -> None:
    at = clock.now_ms + ahead_ms
    other = LeaseRecord(STREAM, 4, ELSEWHERE, "run", at, at)
    assert ledger.take_lease(None, other)
    said: list[str] = []

    if ledger.has_clock and ahead_ms < 0:
        # By the clock of the database, from which the holder has its time too, the holder is dead.
        wait_until_free(ledger, STREAM, wait_s=0, say=said.append)
        assert said == []
        return
    if alive:
        timer = threading.Timer(0.2, ledger.renew_lease, (other._replace(heartbeat_ms=at + 1),))
        timer.start()
        with pytest.raises(LeaseHeld):
            wait_until_free(ledger, STREAM, wait_s=0, say=said.append, expires_s=2)
        timer.join()
    else:
        wait_until_free(ledger, STREAM, wait_s=0, say=said.append, expires_s=0.3)
        assert Lease.acquire(ledger, STREAM, folder, "apply").fence == 5
    assert "was made by the clock of elsewhere; watching for 0.3 s" in said[0] or alive


def test_leases_of_a_dead_host_are_watched_together(ledger: Ledger, clock: Clock) -> None:
    old = LeaseRecord(STREAM, 4, ELSEWHERE, "run", clock.now_ms - 3_600_000, clock.now_ms - 3_600_000)
    assert ledger.take_lease(None, old)
    began = time.monotonic()

    wait_until_free(ledger, STREAM, wait_s=0, say=lambda _: None, before=(old, began - 60))

    assert time.monotonic() - began < 5
    assert ledger.lease(STREAM) == (old if ledger.has_clock else old._replace(holder=None))


def test_a_heartbeat_just_in_time_keeps_the_lease(ledger: Ledger, clock: Clock) -> None:
    seen = _held_by(ledger, ELSEWHERE, clock)
    assert ledger.renew_lease(seen._replace(heartbeat_ms=clock.now_ms + 1))
    assert not ledger.take_lease(seen, seen._replace(fence=5, holder=this_process()))


def test_a_holder_who_was_replaced_learns_it_and_changes_nothing(ledger: Ledger, folder: Path, clock: Clock) -> None:
    late = Lease.acquire(ledger, STREAM, folder, "run")
    newer = LeaseRecord(STREAM, 2, ELSEWHERE, "apply", clock.now_ms, clock.now_ms)
    assert ledger.take_lease(late.record, newer)
    clock.forward(1)
    for write in (late.heartbeat, lambda: late.add_jvm(os.getpid())):
        with pytest.raises(LeaseHeld) as caught:
            write()
        assert (caught.value.code, caught.value.expected) == ("lease-lost", "fence 1")
        assert caught.value.found == "fence 2, held by pid 1 on elsewhere for apply"
    late.release()
    assert ledger.lease(STREAM) == newer


def test_a_released_lease_cannot_be_renewed(ledger: Ledger, folder: Path) -> None:
    lease = Lease.acquire(ledger, STREAM, folder, "run")
    lease.release()
    with raises_code(LeaseHeld, "lease-lost"):
        lease.heartbeat()


def test_a_ledger_that_was_created_again_still_sees_the_living_holder_in_the_file(
    ledger: Ledger, folder: Path, empty_sqlite: Path, tmp_path: Path
) -> None:
    Lease.acquire(ledger, STREAM, folder, "run").release()
    holder = Lease.acquire(ledger, STREAM, folder, "run")
    created_again = tmp_path / "created-again.db"
    created_again.write_bytes(empty_sqlite.read_bytes())
    with Ledger.open(created_again, create=False) as other:
        with pytest.raises(LeaseHeld):
            Lease.acquire(other, STREAM, folder, "apply")
        holder.release()
        assert Lease.acquire(other, STREAM, folder, "apply").fence == 3


def test_a_damaged_file_locks_nobody_out(ledger: Ledger, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "lease.json").write_text('{"fence": 7, "holder"')
    assert Lease.acquire(ledger, STREAM, folder, "run").fence == 1


def _held_by(ledger: Ledger, holder: Holder, clock: Clock) -> LeaseRecord:
    record = LeaseRecord(STREAM, 4, holder, "run", acquired_ms=clock.now_ms, heartbeat_ms=clock.now_ms)
    assert ledger.take_lease(None, record)
    return record


def _refusal(ledger: Ledger) -> str:
    try:
        wait_until_free(ledger, STREAM, wait_s=0, say=lambda _: None)
    except LeaseHeld as refusal:
        return "only its JVM" if "JVM" in refusal.message else "alive"
    return "free"


def _wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_id_larger_than_any_is_not_alive() -> None:
    """An edited lease holds a number that the system cannot take."""
    assert not is_alive(2**40, 1)
