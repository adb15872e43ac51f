"""A headless Chromium, controlled through a pipe: the page as a reader sees it, with keys, pointer and errors."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any


def _runs(found: str) -> bool:
    """Return whether the browser starts. On some systems the command only explains how to install it."""
    return subprocess.run([found, "--version"], capture_output=True, timeout=60, check=False).returncode == 0


NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name)) and _runs(found)), "")
PIPES = """
import fcntl, os, sys
for fd, wanted in [(fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10), wanted) for fd, wanted in zip(sys.argv[1:3], (3, 4))]:
    os.dup2(fd, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""  # Chromium reads commands from 3 and answers on 4, each ended by a zero byte
# the number of elements with an attribute that runs code
WITH_HANDLERS = (
    "[...document.querySelectorAll('*')].filter((e) => e.getAttributeNames().some((n) => n.startsWith('on')) || "
    "/^(javascript|data|vbscript):/i.test(e.getAttribute('href') ?? '')).length"
)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe")


@contextmanager
def reading(report: Path, profile: Path, width: int = 1200) -> Iterator[Browser]:
    """Open the report in the folder ``report``. In the end, no error and no request may have occurred."""
    with Browser(profile, width) as page:
        page.open(report / "index.html")
        page.until("document.querySelector('#x-circuit h4') && document.querySelector('#w-said').textContent")
        yield page
        assert page.complaints == []
        asked = {request.split("#")[0] for request in page.requests if not request.startswith("data:")}
        assert asked == {(report / "index.html").as_uri()}


class Browser:
    """One page. ``complaints`` holds its console errors, uncaught exceptions, policy violations and network
    requests."""

    def __init__(self, folder: Path, width: int = 1200, height: int = 900) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", PIPES, str(commands), str(answers), CHROMIUM, *FLAGS, f"--user-data-dir={folder}"],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._unread, self._number, self._session = b"", 0, ""
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(30)
        os.close(self._commands)
        os.close(self._answers)

    def open(self, page: Path) -> None:
        """Open a page and wait until it has loaded."""
        self.send("Page.navigate", url=page.as_uri())
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def ask(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, awaited."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (expression, answer["exceptionDetails"])
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """Return the text of the first element that ``selector`` matches."""
        return str(self.ask(f"document.querySelector({json.dumps(selector)}).textContent"))

    def texts(self, selector: str) -> list[str]:
        """Return the first text in each element that ``selector`` matches."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return list(self.ask(f"{found}.map((e) => e.firstChild?.textContent)"))

    def click(self, selector: str) -> None:
        """Click the first element that ``selector`` matches."""
        self.ask(f"document.querySelector({json.dumps(selector)}).click()")

    def choose(self, selector: str, value: str) -> None:
        """Give a field or a list a value, as a reader does."""
        self.ask(
            f"(() => {{ const c = document.querySelector({json.dumps(selector)}); c.value = {json.dumps(value)}; "
            "for (const kind of ['input', 'change']) c.dispatchEvent(new Event(kind, {bubbles: true})); })()"
        )

    def until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true, for at most 20 seconds."""
        waiting = f"""new Promise((done) => {{
            const end = Date.now() + 20000;
            const look = () => {{
                if ({expression}) done(true);
                else if (Date.now() > end) done(false);
                else setTimeout(look, 20);
            }};
            look();
        }})"""
        assert self.ask(waiting) is True, f"never true: {expression}"

    def press(self, key: str) -> None:
        """Press a key. The focused element receives it."""
        text = {"text": "\r"} if key == "Enter" else {}
        codes = {"Tab": 9, "Enter": 13} | {
            name: 35 + i for i, name in enumerate(["End", "Home", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"])
        }
        about = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        self.send("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **about)

    def emulate(self, media: str, scheme: str = "light") -> None:
        """Show the page on screen or in print, with a light or dark color scheme."""
        scheme_asked = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=media, features=scheme_asked)

    def hover(self, selector: str, number: int, *, click: bool = False) -> None:
        """Move the pointer to one of the elements that ``selector`` matches."""
        found = f"document.querySelectorAll({json.dumps(selector)})[{number}]"
        x, y = self.ask(
            f"(() => {{ const e = {found}; e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect(); "
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def send(self, method: str, **given: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._notice(answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._unread:
            assert select.select([self._answers], [], [], 60)[0], "the browser says nothing"
            more = os.read(self._answers, 1 << 20)
            assert more, "the browser has gone"
            self._unread += more
        line, self._unread = self._unread.split(b"\0", 1)
        return json.loads(line)

    def _notice(self, event: Any) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown" or (
            method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning")
        ):
            self.complaints.append(json.dumps(given))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.complaints.append(json.dumps(given["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
