"""WebHDFS where it fails: what a NameNode has not done is sent again, and nothing that failed is taken for absent."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slackwater.cli.main import main
from slackwater.core.errors import UsageError
from slackwater.storage import hdfs_filesystem
from slackwater.storage.hadoop import hadoop_settings
from slackwater.storage.hdfs_filesystem import HdfsFileSystem
from slackwater.storage.kinds import http_addresses, umask
from slackwater.storage.open import open_read_store, open_write_store
from slackwater.storage.protocols import WriteStore
from tests.support.errors import raises_code
from tests.support.hdfs import USER, HdfsServer
from tests.support.processes import accepted
from tests.support.s3_proxy import LosingProxy, losing_proxy

HIDDEN = "not-to-be-shown"
HA = {
    "fs.defaultFS": "hdfs://lake",
    "dfs.ha.namenodes.lake": "one, two",
    "dfs.namenode.http-address.lake.one": "first:9870",
    "dfs.namenode.http-address.lake.two": "second:8080",
}


def test_the_address_of_the_namenode() -> None:
    own = {"fs.defaultFS": "hdfs://host:9000/", "dfs.namenode.http-address": "web:1234"}
    wildcard = {**own, "dfs.namenode.http-address": "0.0.0.0:1234"}
    assert http_addresses("hdfs", "host:9000", {}, https=False) == (("host", 9870),)
    assert http_addresses("hdfs", "host:9000", {}, https=True) == (("host", 9871),)
    assert http_addresses("hdfs", "host:9000", own, https=False) == (("web", 1234),)
    assert http_addresses("hdfs", "host:9000", wildcard, https=False) == (("host", 1234),)
    assert http_addresses("hdfs", "other:9000", own, https=False) == (("other", 9870),)
    assert http_addresses("webhdfs", "host:50070", own, https=False) == (("host", 50070),)
    assert http_addresses("hdfs", "lake", HA, https=False) == (("first", 9870), ("second", 8080))


def test_the_configuration_of_hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name> a </name><value>x ${b}</value><final>true</final></property>"
        "<property><name>b</name><value>&lt;y&gt;</value></property>"
        "<property><name>c</name><value>${user.name}</value></property></configuration>"
    )
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert hadoop_settings() == {"a": "x <y>", "b": "<y>", "c": "${user.name}"}
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    with raises_code(UsageError, "hadoop-configuration"):
        hadoop_settings()
    monkeypatch.delenv("HADOOP_CONF_DIR")
    assert hadoop_settings() == {}
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    assert hadoop_settings() == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("022", 0o022), ("0002", 0o002), (" 77 ", 0o077), ("u=rwx,g=rwx,o=rx", 0o002), ("u=rwx,g=,o=", 0o077)],
)
def test_the_umask_of_hadoop(text: str, expected: int) -> None:
    assert umask({"fs.permissions.umask-mode": text}) == expected
    assert umask({}) == 0o022


@pytest.mark.parametrize("text", ["", "8", "u=rwx", "u=rwx,g=rwx,o=rwz", "u=rwx,u=rwx,o=rwx"])
def test_what_is_no_umask_is_refused(text: str) -> None:
    with raises_code(UsageError, "hadoop-configuration"):
        umask({"fs.permissions.umask-mode": text})


def test_a_location_without_a_host_is_on_the_default_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(UsageError, match="has no NameNode"):
        open_read_store("hdfs:///checkpoint")
    with _answers([(404, _exception("FileNotFoundException"))]) as (port, asked):
        setting = f"<property><name>fs.defaultFS</name><value>webhdfs://127.0.0.1:{port}</value></property>"
        (tmp_path / "core-site.xml").write_text(f"<configuration>{setting}</configuration>")
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
        assert not open_read_store("webhdfs:///a b/checkpoint").exists("x")
    assert asked[0].startswith("GET /webhdfs/v1/a%20b/checkpoint/x?")


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs_filesystem, "PAUSES_S", (0.0, 0.0))


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("name", ["SafeModeException", "RetriableException", "StandbyException"])
def test_what_a_namenode_has_not_done_is_sent_again(name: str) -> None:
    refused, done = (403, _exception(name)), (200, b"")
    with _answers([refused, refused, done]) as (port, asked):
        HdfsFileSystem((("127.0.0.1", port),)).mv("/a", "/b")
    assert len(asked) == 3
    with _answers([refused] * 3) as (port, asked), pytest.raises(OSError, match=name):
        HdfsFileSystem((("127.0.0.1", port),)).mv("/a", "/b")


@pytest.mark.usefixtures("no_pauses")
def test_the_active_namenode_answers() -> None:
    standby, status = (403, _exception("StandbyException")), (404, _exception("FileNotFoundException"))
    with _answers([standby]) as (first, asked), _answers([status, status]) as (second, asked_second):
        filesystem = HdfsFileSystem((("127.0.0.1", first), ("127.0.0.1", second)))
        assert not filesystem.exists("/a")
        assert not filesystem.exists("/a")
    assert (len(asked), len(asked_second)) == (1, 2)


def test_throttling_is_waited_out() -> None:
    with _answers([(503, b""), (404, _exception("FileNotFoundException"))]) as (port, asked):
        assert not HdfsFileSystem((("127.0.0.1", port),)).exists("/a")
    assert len(asked) == 2


def test_a_listing_that_is_cut_off_is_no_listing() -> None:
    listing = json.dumps({"FileStatuses": {"FileStatus": []}}).encode()
    for answer in ((200, listing[:-9]), (500, b"")):
        with _answers([answer]) as (port, _):
            store = open_write_store(f"webhdfs://127.0.0.1:{port}/checkpoint")
            with pytest.raises(OSError, match=r"cut off|HTTP 500"):
                list(store.folders())


def test_an_error_is_not_absence_and_shows_no_token() -> None:
    with _answers([(500, b"broken")] * 3) as (port, _):
        filesystem = HdfsFileSystem((("127.0.0.1", port),), token=HIDDEN)
        for call in (filesystem.exists, filesystem.cat_file, filesystem.find):
            with pytest.raises(OSError, match="HTTP 500"):
                call("/a")
    with pytest.raises(OSError, match="no answer from") as failed:
        filesystem.exists("/a")
    assert HIDDEN not in str(failed.value)
    assert failed.value.__cause__ is None


def test_a_namenode_that_does_not_answer_is_asked_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hdfs_filesystem, "READ_S", 1.0)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        assert main(["inspect", f"webhdfs://127.0.0.1:{silent.getsockname()[1]}/checkpoint"]) == 9
        assert accepted(silent) == 1
    assert "error store-unreachable: " in capsys.readouterr().err


def test_the_namenode_that_answers_is_asked_where_another_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs_filesystem, "READ_S", 1.0)
    monkeypatch.setattr(hdfs_filesystem, "CHANGE_S", 1.0)
    absent = (404, _exception("FileNotFoundException"))
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent, _answers([absent] * 4) as (port, asked):
        addresses = (("127.0.0.1", silent.getsockname()[1]), ("127.0.0.1", port))
        filesystem = HdfsFileSystem(addresses)
        assert not filesystem.exists("/a")
        assert not filesystem.exists("/a")
        # A change is not made by another one as long as it may have been made.
        with pytest.raises(OSError, match="no answer"):
            HdfsFileSystem((*addresses[:1], ("localhost", port))).mv("/a", "/b")
    assert [request.split("?")[0] for request in asked] == [f"GET /webhdfs/v1/{name}" for name in "aaab"]


@pytest.fixture
def losing(
    hdfs_server: HdfsServer, hdfs_location: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[LosingProxy, WriteStore]]:
    """A proxy before the NameNode, and a store that is reached through it."""
    monkeypatch.setenv("HADOOP_USER_NAME", USER)
    with losing_proxy(f"http://{hdfs_server.http_address}") as proxy:
        address = proxy.endpoint.partition("://")[2]
        yield proxy, open_write_store(f"webhdfs://{address}{hdfs_location.removeprefix(hdfs_server.uri)}")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda store: store.write("a", b"new"), {"a": b"new", "b": b"b"}),
        (lambda store: store.create("c", b"c"), {"a": b"old", "b": b"b", "c": b"c"}),
        (lambda store: store.delete("a"), {"b": b"b"}),
        (lambda store: store.rename("b", "c"), {"a": b"old", "c": b"b"}),
        (lambda store: store.delete_tree(), {}),
    ],
)
def test_a_change_whose_answer_is_lost_is_made_once(
    losing: tuple[LosingProxy, WriteStore], change: Callable[[WriteStore], object], found: dict[str, bytes]
) -> None:
    proxy, store = losing
    store.write("a", b"old")
    store.write("b", b"b")
    proxy.lose_first_answers()
    change(store)
    assert proxy.lost >= 1
    proxy.lose_none()
    assert {entry.name: store.read(entry.name) for entry in store.list()} == found


@pytest.mark.spark
def test_what_was_not_made_is_an_error_where_answers_are_lost(losing: tuple[LosingProxy, WriteStore]) -> None:
    proxy, store = losing
    store.write("b", b"b")
    proxy.lose_first_answers()
    with pytest.raises(OSError, match="only the second request was answered"):
        store.rename("none", "c")
    # A part that is appended twice would be there twice.
    with pytest.raises(OSError, match="no answer"):
        store.write_pieces("b", iter((b"n", b"ew")))
    store.write("a", b"a")
    with pytest.raises(FileExistsError):
        store.rename("a", "b")
    proxy.lose_none()
    assert {entry.name: store.read(entry.name) for entry in store.list()} == {"a": b"a", "b": b"b"}


@pytest.mark.spark
def test_what_is_created_has_the_rights_that_the_umask_leaves(hdfs_server: HdfsServer, hdfs_location: str) -> None:
    filesystem = HdfsFileSystem(hdfs_server.filesystem().addresses, user=USER, umask=0o007)
    place = hdfs_location.removeprefix(hdfs_server.uri)
    filesystem.makedirs(f"{place}/a/b")
    filesystem.pipe_file(f"{place}/a/put", b"1")
    filesystem.pipe_file(f"{place}/a/created", b"1", mode="create")
    with filesystem.open(f"{place}/a/parts", "wb") as file:
        file.write(b"1")
    listed = filesystem._call("LISTSTATUS", path=f"{place}/a").json()["FileStatuses"]["FileStatus"]
    rights = {one["pathSuffix"]: one["permission"] for one in listed}
    assert rights == {"b": "770", "put": "660", "created": "660", "parts": "660"}


@pytest.mark.spark
@pytest.mark.usefixtures("no_pauses")
def test_safe_mode_refuses_changes_and_loses_nothing(hdfs_server: HdfsServer, hdfs_location: str) -> None:
    store = open_write_store(hdfs_location)
    store.write("a", b"old")
    hdfs_server.set_safe_mode(on=True)
    try:
        for change in (partial(store.write, "a", b"new"), partial(store.delete, "a"), partial(store.create, "b", b"")):
            with pytest.raises(OSError, match="safe mode"):
                change()
        assert store.read("a") == b"old"
    finally:
        hdfs_server.set_safe_mode(on=False)
    store.write("a", b"new")
    assert [(entry.name, store.read(entry.name)) for entry in store.list()] == [("a", b"new")]


@pytest.mark.spark
def test_without_its_datanode_nothing_is_replaced(hdfs_server: HdfsServer, hdfs_location: str) -> None:
    store = open_write_store(hdfs_location)
    store.write("a", b"old")
    hdfs_server.kill_datanode()
    try:
        with pytest.raises(OSError, match=r"no answer|HTTP|Exception"):
            store.write("a", b"new")
        with pytest.raises(OSError, match=r"no answer|HTTP|Exception"):
            store.read("a")
        assert [entry.name for entry in store.list() if not entry.name.startswith(".")] == ["a"]
    finally:
        hdfs_server.start_datanode()
    assert store.read("a") == b"old"
    store.write("a", b"new")
    assert store.read("a") == b"new"


def _exception(name: str) -> bytes:
    return json.dumps({"RemoteException": {"exception": name, "message": "Name node is in safe mode."}}).encode()


@contextmanager
def _answers(answers: list[tuple[int, bytes]]) -> Iterator[tuple[int, list[str]]]:
    """A server that gives these answers, one after the other: its port, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append(self.requestline)
            status, body = answers[len(asked) - 1]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    for method in ("GET", "PUT", "DELETE"):
        setattr(Handler, f"do_{method}", Handler._answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_port, asked
        server.shutdown()
        thread.join()
