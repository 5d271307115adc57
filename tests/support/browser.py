"""A real browser without a window, spoken to by Chromium's DevTools protocol over two pipes: no port, no driver."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
END_S = 30


@dataclass(slots=True)
class Opened:
    """A page as a browser shows it. ``requests`` are the addresses it asked for, ``complaints`` its console."""

    browser: Browser
    session: str

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript is in the page. The page itself needs none."""
        answer = self.browser.call(
            "Runtime.evaluate", {"expression": expression, "returnByValue": True}, session=self.session
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def resize(self, width: int) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.browser.call("Emulation.setDeviceMetricsOverride", size, session=self.session)

    def picture(self, file: Path, height: int | None = None) -> None:
        """A screenshot as PNG, of the whole page or of its first ``height`` pixels."""
        clip = {"x": 0, "y": 0, "scale": 1}
        clip |= {"width": self.value("innerWidth"), "height": height or self.value("document.body.scrollHeight")}
        answer = self.browser.call(
            "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}, session=self.session
        )
        file.write_bytes(base64.b64decode(answer["data"]))


@dataclass(slots=True)
class Browser:
    """A running browser. ``events`` are all that it has reported."""

    reads: int
    writes: int
    events: list[dict[str, Any]] = field(default_factory=list)
    _buffer: bytes = b""
    _calls: int = 0
    _target: str | None = None

    def open(self, file: Path | str, width: int, *, dark: bool = False, printed: bool = False) -> Opened:
        """A local file, without a network, or an address, in a new page of this width. Closes the page before it."""
        before, self._target = self._target, self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        if before is not None:
            self.call("Target.closeTarget", {"targetId": before})
        session = self.call("Target.attachToTarget", {"targetId": self._target, "flatten": True})["sessionId"]
        offline = {"offline": isinstance(file, Path), "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        for method, params in (
            ("Page.enable", {}),
            ("Runtime.enable", {}),
            ("Log.enable", {}),
            ("Network.enable", {}),
            ("Network.emulateNetworkConditions", offline),
            ("Emulation.setEmulatedMedia", {"media": "print" if printed else "screen", "features": [scheme]}),
        ):
            self.call(method, params, session=session)
        page = Opened(self, session)
        page.resize(width)
        self.events.clear()
        self.call("Page.navigate", {"url": file.as_uri() if isinstance(file, Path) else file}, session=session)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive()
        return page

    def requests(self) -> list[str]:
        """The addresses that the last opened page has asked for."""
        asked = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [str(params["request"]["url"]) for params in asked]

    def complaints(self) -> list[str]:
        kinds = {"Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"}
        return [json.dumps(event["params"]) for event in self.events if event["method"] in kinds]

    def call(self, method: str, params: dict[str, Any] | None = None, *, session: str | None = None) -> dict[str, Any]:
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": params or {}}
        message |= {"sessionId": session} if session is not None else {}
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._calls:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self.reads, 1 << 20)
            assert more, "the browser has ended"
            self._buffer += more
        whole, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(whole)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def running_browser(profile: Path) -> Iterator[Browser]:
    """A browser with a new profile, ended by its own command, else by its process id."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    assert program is not None, "there is no Chromium on this machine: scripts/test installs it"
    theirs, writes = os.pipe()
    reads, answers = os.pipe()
    # The browser reads from descriptor 3 and writes to descriptor 4.
    with (profile.parent / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{theirs} 4>&{answers}', program, *OPTIONS, f"--user-data-dir={profile}"],
            pass_fds=(theirs, answers),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(theirs)
    os.close(answers)
    browser = Browser(reads, writes)
    try:
        yield browser
        browser.call("Browser.close")
        process.wait(END_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(END_S)
        os.close(reads)
        os.close(writes)
