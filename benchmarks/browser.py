"""A headless Chromium on a leash of two pipes: no port, no network, no driver to install.

Chromium speaks the DevTools protocol on file descriptors 3 and 4 when it is started with
``--remote-debugging-pipe``: JSON messages that end with a zero byte. That is all there is here.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
SECONDS = 30.0


def find() -> str | None:
    """Where a Chromium is, or None; the environment variable ``CHROMIUM`` overrules."""
    own = os.environ.get("CHROMIUM")
    return own or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One Chromium; :meth:`page` opens a tab."""

    def __init__(self, path: str, folder: str) -> None:
        self.folder = Path(folder)
        hears, self._out = os.pipe()
        self._in, says = os.pipe()
        # The child must find its ends as 3 and 4, whatever their numbers are here.
        script = f'exec "$0" "$@" 3<&{hears} 4>&{says} {hears}<&- {says}>&-'
        if {hears, says} & {3, 4}:
            script = f'exec 13<&{hears} 14>&{says}; exec "$0" "$@" 3<&13 4>&14 13<&- 14>&-'
        self._process = subprocess.Popen(
            ["bash", "-c", script, path, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(hears, says),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(hears)
        os.close(says)
        self._last, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result."""
        self._last += 1
        number = self._last
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        limit = time.monotonic() + SECONDS
        while True:
            found = self._read(limit)
            if found.get("id") == number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']['message']}")
                return found["result"]
            self.events.append(found)

    def wait(self, method: str, session: str) -> dict[str, Any]:
        """The next event of a kind, also one that has come already."""
        limit = time.monotonic() + SECONDS
        while True:
            for place, event in enumerate(self.events):
                if event.get("method") == method and event.get("sessionId") == session:
                    return self.events.pop(place)
            self.events.append(self._read(limit))

    def _read(self, limit: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(limit - time.monotonic(), 0))
            if not ready:
                raise TimeoutError("Chromium does not answer")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium has gone")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    @contextlib.contextmanager
    def page(self, url: str, **look: Any) -> Iterator["Page"]:
        """A tab that shows an address; see :meth:`Page.look` for the rest."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Page(self, session)
        try:
            for domain in ("Page", "Runtime", "Log", "Network"):
                tab.send(f"{domain}.enable")
            tab.look(**look)
            tab.open(url)
            yield tab
        finally:
            self.send("Target.closeTarget", targetId=target)

    def close(self) -> None:
        """End the process that was started here."""
        with contextlib.suppress(Exception):
            self.send("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(5)
        os.close(self._in)
        os.close(self._out)


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol on this tab."""
        return self.browser.send(method, self.session, **params)

    def look(
        self, width: int = 1200, height: int = 900, *, dark: bool = False, media: str = ""
    ) -> None:
        """Set the size of the window, the colour scheme, and the medium (such as print)."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def open(self, url: str) -> None:
        """Go to an address and wait until it is there."""
        self.send("Page.navigate", url=url)
        self.browser.wait("Page.loadEventFired", self.session)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are waited for."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key, such as Tab, Enter or ArrowRight."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowRight": 39}
        number = codes.get(key, 0)
        event = {"key": key, "code": key, "windowsVirtualKeyCode": number, "modifiers": 8 * shift}
        text = {"Enter": "\r", " ": " "}.get(key)
        down = {**event, "text": text} if text else event
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **down)
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def hover(self, x: float, y: float) -> None:
        """Move the mouse to a place."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def problems(self) -> list[str]:
        """Errors on the console, and every address that was asked for beside the page's own."""
        self.send("Runtime.evaluate", expression="1")  # what came before has arrived now
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            params, kind = event.get("params", {}), event.get("method")
            if kind == "Runtime.exceptionThrown":
                found.append(
                    params["exceptionDetails"].get("exception", {}).get("description", "?")
                )
            elif kind == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            elif kind == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif kind == "Network.requestWillBeSent" and params["type"] != "Document":
                address = params["request"]["url"]
                if not address.startswith(("data:", "blob:")):
                    found.append(f"asked for {address}")
        return found

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """A picture of the page, as PNG."""
        found = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def pdf(self) -> bytes:
        """The page as it would be printed."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def save_to(self, folder: Path) -> None:
        """Let the page save files here."""
        self.browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))


@contextlib.contextmanager
def started(path: str) -> Iterator[Browser]:
    """A browser for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        browser = Browser(path, folder)
        try:
            yield browser
        finally:
            browser.close()
