"""A headless Chromium, controlled over two pipes (the DevTools protocol) without a driver."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PDFTOTEXT = shutil.which("pdftotext")

WIDE, NARROW = (1280, 900), (400, 740)


class Browser:
    """One page of a headless browser; console messages and failed loads are collected."""

    def __init__(self, profile: Path) -> None:
        self.complaints: list[str] = []
        self._last_id = 0
        self._events: list[dict[str, Any]] = []
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
        script = f'exec "$@" 3<&{to_child} 4>&{from_child} 2>/dev/null'
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
        ]
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "bash", str(CHROMIUM), *flags, "about:blank"],
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer = b""
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **parameters: Any) -> Any:
        """Send one command and return its result."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def open(self, path: Path, size: tuple[int, int], scheme: str = "light") -> None:
        """Open a file in a window of the given size, and wait until it is loaded."""
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.media("screen", scheme)
        self._events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._note(self._receive())

    def media(self, kind: str, scheme: str) -> None:
        """Choose screen or print, light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=kind, features=features)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click in the middle of an element, as a person would."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).scrollIntoView()")
        box = self.evaluate(
            f"(r => [r.x + r.width / 2, r.y + Math.min(r.height, 40) / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )
        self.settle()

    def settle(self) -> None:
        """Wait until two frames are drawn: by then, handlers of earlier events have finished."""
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.call("Runtime.evaluate", expression=frames, awaitPromise=True)

    def hover(self, selector: str, press: bool = False) -> None:
        """Move the pointer onto the middle of an element, and press its button there if asked."""
        quoted = json.dumps(selector)
        self.evaluate(f"document.querySelector({quoted}).scrollIntoView({{block: 'center'}})")
        box = self.evaluate(
            f"(r => [r.x + r.width / 2, r.y + r.height / 2])"
            f"(document.querySelector({quoted}).getBoundingClientRect())"
        )
        place = {"x": box[0], "y": box[1]}
        self.settle()  # scrolling is over
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        for kind in ("mousePressed", "mouseReleased") if press else ():
            button = {"button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **place, **button)

    def type(self, selector: str, text: str) -> None:
        """Set the text of a field and send the event that typing would send."""
        self.evaluate(
            f"(e => {{ e.value = {json.dumps(text)}; e.dispatchEvent(new Event('input')); }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )

    def printed_pages(self) -> list[str]:
        """Print the page and return the text of every sheet; needs pdftotext."""
        answer = self.call("Page.printToPDF", printBackground=True)
        pdf = base64.b64decode(answer["data"])
        assert PDFTOTEXT is not None
        run = subprocess.run([PDFTOTEXT, "-", "-"], input=pdf, capture_output=True, check=True)
        return run.stdout.decode().rstrip("\f").split("\f")

    def press(self, key: str, code: int) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                text={"Enter": "\r", " ": " "}.get(key, "") if kind == "keyDown" else "",
            )

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """Save a picture of the whole page, or of the visible part."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._read, 1 << 16)
            assert chunk, "the browser has gone"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        method, details = event["method"], event.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(details))
        if method == "Network.requestWillBeSent":
            url = details["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.complaints.append(f"asked the network for {url}")
