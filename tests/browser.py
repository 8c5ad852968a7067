"""Chromium without a window, driven over a pipe by its own protocol: no package, no port.

https://chromedevtools.github.io/devtools-protocol
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb"),
)
READ, WRITE = 3, 4  # the descriptors that Chromium is spoken to by
PATIENCE = 120  # seconds for an answer


def chromium() -> str | None:
    """Return where Chromium is, if it is."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of Chromium, and what happened on it: requests and words of the console."""

    def __init__(self, program: str) -> None:
        self._home = tempfile.mkdtemp(prefix="chromium-")
        theirs_in, ours_out = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in os.pipe())
        ours_in, theirs_out = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in os.pipe())
        quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        actions = [(os.POSIX_SPAWN_DUP2, theirs_in, READ), (os.POSIX_SPAWN_DUP2, theirs_out, WRITE)]
        command = [program, *FLAGS, f"--user-data-dir={self._home}", "about:blank"]
        self._process = os.posix_spawn(
            program, command, os.environ | {"HOME": self._home}, file_actions=quiet + actions
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out, self._rest, self._count = ours_in, ours_out, b"", 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.console: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        """End Chromium and remove its profile."""
        os.close(self._out)  # it ends when nobody speaks to it
        for _ in range(100):
            if os.waitpid(self._process, os.WNOHANG)[0]:
                break
            time.sleep(0.1)
        else:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        os.close(self._in)
        shutil.rmtree(self._home, ignore_errors=True)

    def ask(self, method: str, **params):
        """Return the answer to a command."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._count:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']['message']}")
                return told["result"]

    def open(self, address: str, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Go to a page in a window of some size, and wait until it is loaded."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.requests, self.console, self._loaded = [], [], False
        told = self.ask("Page.navigate", url=address)
        if "errorText" in told:
            raise RuntimeError(f"{address}: {told['errorText']}")
        while not self._loaded:
            self._next()

    def run(self, script: str):
        """Return what an expression of JavaScript gives."""
        told = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in told:
            raise RuntimeError(json.dumps(told["exceptionDetails"])[:2000])
        return told["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        given = {"key": key, "windowsVirtualKeyCode": codes[key]}
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        self.ask(
            "Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **given, **text
        )
        self.ask("Input.dispatchKeyEvent", type="keyUp", **given)

    def _next(self):
        """Return the next message; keep what it tells of the page."""
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], PATIENCE)[0]:
                raise TimeoutError(f"Chromium said nothing for {PATIENCE} seconds")
            read = os.read(self._in, 1 << 20)
            if not read:
                raise RuntimeError("Chromium ended")
            self._rest += read
        body, _, self._rest = self._rest.partition(b"\0")
        told = json.loads(body)
        self._hear(told.get("method", ""), told.get("params", {}))
        return told

    def _hear(self, method: str, params) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.consoleAPICalled":
            self.console.append(str([one.get("value") for one in params["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(params["exceptionDetails"]["text"])
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
