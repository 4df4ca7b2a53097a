"""Programs that a test starts as a machine: the service under test."""

import os
import shlex
import signal
import subprocess
import tempfile
from typing import Mapping, Optional, Sequence, Union

# Time to end by itself after SIGTERM.
_GRACE_SECONDS = 5


class Program:
    """A running program with a process group of its own, ended with the test."""

    def __init__(
        self, command: Union[str, Sequence[str]], env: Mapping[str, str], cwd: Optional[str] = None
    ) -> None:
        words = shlex.split(command) if isinstance(command, str) else [os.fspath(word) for word in command]
        self.command = shlex.join(words)
        self._log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            words,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        """All that the program has printed so far, on both streams."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode("utf-8", "replace")

    @property
    def returncode(self) -> Optional[int]:
        """The exit code; ``None`` while the program runs, negative after a signal."""
        return self.process.poll()

    def wait(self, timeout: float = 10) -> int:
        """Waits until the program ends by itself; returns its exit code."""
        return self.process.wait(timeout)

    def stop(self) -> None:
        """Ends the program and its children: SIGTERM, and SIGKILL after five seconds."""
        if self.process.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self.process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        self._signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Ends the program and drops its output."""
        self.stop()
        self._log.close()

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass
