"""Headless Chromium over its debugging pipe: no driver, no package, no port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)
_PATIENCE = 60.0
# Chromium reads commands from descriptor 3 and writes answers to 4.
_TRAMPOLINE = """
import fcntl, os, sys
given, taken = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3])
os.dup2(given, 3), os.dup2(taken, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_KEYS = {
    "ArrowLeft": 37,
    "ArrowRight": 39,
    "Home": 36,
    "End": 35,
    "Tab": 9,
    "Escape": 27,
    "Enter": 13,
}


def find_chromium() -> str | None:
    """Where it is installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Browser:
    """One process; ``profile`` must be an empty folder."""

    def __init__(self, program: str, profile: Path) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        given = [str(commands), str(answers), program, *_FLAGS, f"--user-data-dir={profile}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _TRAMPOLINE, *given],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """End the process."""
        try:
            self.send("Browser.close")
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def send(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """Give a command and wait for its result; events on the way are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._last:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], _PATIENCE)
            part = os.read(self._answers, 1 << 16) if ready else b""
            if not part:
                raise OSError("Chromium does not answer")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found


class Tab:
    """A page as a user with this screen and these wishes sees it."""

    def __init__(
        self,
        browser: Browser,
        path: Path,
        *,
        width: int = 1280,
        dark: bool = False,
        calm: bool = False,
    ) -> None:
        self._browser = browser
        target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.send("Target.attachToTarget", targetId=target, flatten=True)
        self._target, self._session = target, attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{domain}.enable")
        self._send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if calm else ""}
        self._send("Emulation.setEmulatedMedia", features=[scheme, motion])
        self._send("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    def close(self) -> None:
        """Close the page."""
        self._browser.send("Target.closeTarget", targetId=self._target)

    def _send(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **params)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        result = self._send("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until it is true."""
        until = time.monotonic() + _PATIENCE
        while not self.run(expression):
            if time.monotonic() > until:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press and release a key."""
        for kind in ("rawKeyDown", "keyUp"):
            code = _KEYS[key]
            text = {"text": "\r"} if key == "Enter" and kind == "rawKeyDown" else {}
            self._send(
                "Input.dispatchKeyEvent",
                type="keyDown" if text else kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **text,
            )

    def emulate_media(self, media: str) -> None:
        """Show it as on another medium."""
        self._send("Emulation.setEmulatedMedia", media=media)

    def screenshot(self) -> bytes:
        """A PNG of what is in view."""
        return base64.b64decode(self._send("Page.captureScreenshot")["data"])

    def _events(self, method: str) -> list[dict[str, Any]]:
        mine = (event for event in self._browser.events if event.get("sessionId") == self._session)
        return [event["params"] for event in mine if event["method"] == method]

    @property
    def complaints(self) -> list[str]:
        """What the console has to say."""
        names = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(event) for name in names for event in self._events(name)]

    @property
    def requests(self) -> list[str]:
        """Addresses that were asked for, but those of embedded data."""
        asked = [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]
        return [url for url in asked if not url.startswith("data:")]
