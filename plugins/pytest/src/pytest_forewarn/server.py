"""The process of a server: ``forewarn dev`` on free ports of loopback, with a clock that stands still."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Sequence

from .errors import ForewarnError, ForewarnTimeout, split_hint
from .fleets import Fleet, fleet_file

_START_SECONDS = 30
_POLL_SECONDS = 0.01
_END_SECONDS = 10

_ADDRESSES = "addresses.json"

# The exit code of a command whose time is over.
_TIMED_OUT = 3

# Messages of the program begin with its name, which an exception does not need.
_NAME = "forewarn: "


def find_program() -> str:
    """The program: ``FOREWARN_BIN``, or ``forewarn`` in the path."""
    chosen = os.environ.get("FOREWARN_BIN")
    if chosen:
        if shutil.which(chosen):
            return str(Path(chosen).absolute()) if os.sep in chosen else chosen
        raise ForewarnError(f"FOREWARN_BIN is not a program: {chosen}")
    found = shutil.which("forewarn")
    if not found:
        raise ForewarnError("forewarn is not in PATH", "set FOREWARN_BIN to the program, or install it")
    return found


def clean_environment() -> Dict[str, str]:
    """The environment without settings of another server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FOREWARN_")}


class Server:
    """A running server. ``metadata`` and ``api`` are its addresses."""

    def __init__(self, fleet: Fleet, options: Sequence[str] = ()) -> None:
        self.program = find_program()
        self._directory = Path(tempfile.mkdtemp(prefix="forewarn-"))
        try:
            self._process = self._start(fleet, options)
        except BaseException:
            self._remove()
            raise
        try:
            found = self._wait_for(self._directory / _ADDRESSES)
        except BaseException:
            self.stop()
            raise
        self.metadata: str = found["metadata"]
        self.api: str = found["api"]

    def _start(self, fleet: Fleet, options: Sequence[str]) -> "subprocess.Popen[bytes]":
        words = [self.program, "dev", "--clock", "frozen", "--arm-listen", "off"]
        words += ["--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]
        words += ["--addresses-file", str(self._directory / _ADDRESSES)]
        words += ["--fleet", str(fleet_file(fleet, self._directory)), *options]
        with open(self._directory / "log", "wb") as log:
            return subprocess.Popen(
                words, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def log(self) -> str:
        """The output of the server so far."""
        return (self._directory / "log").read_text("utf-8", "replace")

    def run(self, words: Sequence[str], seconds: float = 60) -> "subprocess.CompletedProcess[str]":
        """Runs a command of the program on this server, whatever its exit code."""
        __tracebackhide__ = True
        command = [self.program, "--api", self.api, *words]
        try:
            return subprocess.run(
                command,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise ForewarnTimeout(f"no end after {seconds:g} s: forewarn {' '.join(words)}") from None

    def command(self, words: Sequence[str], seconds: float = 60) -> str:
        """Runs a command, and returns its output. A failed one raises :class:`ForewarnError`."""
        __tracebackhide__ = True
        done = self.run(words, seconds)
        if done.returncode == 0:
            return done.stdout
        text = done.stderr.strip() or done.stdout.strip() or f"forewarn {' '.join(words)} failed"
        detail, hint = split_hint(text[len(_NAME) :] if text.startswith(_NAME) else text)
        kind = ForewarnTimeout if done.returncode == _TIMED_OUT else ForewarnError
        raise kind(detail, hint, done.returncode)

    def stop(self) -> None:
        """Ends the server, and removes its files."""
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def _wait_for(self, addresses: Path) -> Any:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            ended = self._process.poll()
            if ended is not None:
                detail, hint = split_hint(self.log or f"forewarn dev ended with {ended}")
                raise ForewarnError(f"the server does not start: {detail}", hint, ended)
            # The file appears complete, when the server is ready.
            if addresses.exists():
                return json.loads(addresses.read_text("utf-8"))
            time.sleep(_POLL_SECONDS)
        raise ForewarnTimeout(f"the server is not ready after {_START_SECONDS} s\n{self.log}")
