"""The file system of the tests' JVMs does what Hadoop's own does: modes, links, renames, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.warm_jvm import warm_gateway

pytestmark = pytest.mark.spark
OURS = "org.apache.hadoop.fs.local.LocalFiles$"
HADOOPS = {
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.LocalFs",
}


class Scene:
    """A file system for one folder, by both of Hadoop's interfaces."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        gateway: Any = warm_gateway()
        self._hadoop = gateway.jvm.org.apache.hadoop
        configuration = self._hadoop.conf.Configuration()
        for name, value in settings.items():
            configuration.set(name, value)
        address = gateway.jvm.java.net.URI("file:///")
        self._files = self._hadoop.fs.FileSystem.newInstance(address, configuration)
        self._context = self._hadoop.fs.FileContext.getFileContext(address, configuration)
        self._overwrite = gateway.new_array(self._hadoop.fs.Options.Rename, 1)
        self._overwrite[0] = self._hadoop.fs.Options.Rename.valueOf("OVERWRITE")
        self._folder = folder
        folder.mkdir()

    @property
    def classes(self) -> tuple[str, str]:
        """The Java classes behind the two interfaces."""
        return self._files.getClass().getName(), self._context.getDefaultFileSystem().getClass().getName()

    def all_that_is_seen(self) -> list[str]:
        """Change files and folders, and describe all of them."""
        folder = self._folder
        self._files.mkdirs(self._path("made/below"), self._hadoop.fs.permission.FsPermission("0711"))
        for name in ("file", "old", "new"):
            self._files.create(self._path(name)).close()
        for name, mode in (("file", "0640"), ("old", "0600"), ("made", "1777")):
            self._files.setPermission(self._path(name), self._hadoop.fs.permission.FsPermission(mode))
        (folder / "link").symlink_to("file")
        (folder / "nowhere").symlink_to("missing")
        self._context.rename(self._path("file"), self._path("old"), self._overwrite)
        seen = [f"{path.name} {path.lstat().st_mode:o}" for path in sorted(folder.rglob("*"))]
        return seen + [self._link(name) for name in ("old", "made", "link", "nowhere", "missing")] + [self._refused()]

    def _path(self, name: str) -> Any:
        return self._hadoop.fs.Path(str(self._folder / name))

    def _link(self, name: str) -> str:
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with pyspark

        try:
            found = self._context.getFileLinkStatus(self._path(name))
        except (Py4JJavaError, AssertionError) as error:
            return f"{name} {_java_class(error)}"
        target = found.getSymlink().getName() if found.isSymlink() else ""
        return f"{name} {found.isDirectory()} {found.getLen()} {found.getPermission()} {target}"

    def _refused(self) -> str:
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - as above

        with pytest.raises((Py4JJavaError, AssertionError)) as refused:
            self._context.rename(self._path("missing"), self._path("never"), self._overwrite)
        return _java_class(refused.value)


def _java_class(error: BaseException | None) -> str:
    """The class of the Java exception; where a session of this process has ended, PySpark fails to convert it."""
    while error is not None and not hasattr(error, "java_exception"):
        error = error.__context__
    assert error is not None
    raised: Any = error
    return str(raised.java_exception.getClass().getName())


def test_it_is_used_and_does_what_hadoops_own_does(tmp_path: Path) -> None:
    ours, hadoops = Scene(tmp_path / "ours", {}), Scene(tmp_path / "hadoops", HADOOPS)
    assert ours.classes == (f"{OURS}Checked", f"{OURS}CheckedContext")
    assert hadoops.classes == tuple(HADOOPS.values())
    seen = ours.all_that_is_seen()
    assert seen == hadoops.all_that_is_seen()
    assert "old 100640" in seen
