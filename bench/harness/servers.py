"""Starting, watching and stopping a server under test."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import procfs
from .errors import Unusable

START_TIMEOUT = 20.0  # seconds
STOP_TIMEOUT = 5.0  # seconds


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass(frozen=True)
class Command:
    """A program of a server that stays in the foreground."""

    argv: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    #: a line of its output that says that it is ready, if it has one
    ready_line: str | None = None
    #: a Unix socket that it listens on, to be awaited before the next program starts
    ready_socket: Path | None = None


class Server:
    """One or more programs that answer on one TCP port of 127.0.0.1."""

    def __init__(
        self, name: str, title: str, port: int, commands: list[Command], scratch: Path, processes: int = 1
    ) -> None:
        self.name = name
        self.title = title
        self.port = port
        self._commands = commands
        self._scratch = scratch
        #: pools are complete with this many
        self._complete = processes
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def host(self) -> str:
        """What clients put into the Host header."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process of its front, the last program."""
        return self._processes[-1].pid

    def start(self, core: int | None) -> None:
        """Start on one core (None: on any) and return once the port accepts connections and pools are complete."""
        try:
            for command in self._commands:
                self._launch(command, core)
            self._await(self._accepts, "accept connections")
            if self._complete > 1:
                self._await(lambda: len(self.pids()) >= self._complete, f"have {self._complete} processes")
        except BaseException:
            self.stop()
            raise

    def _launch(self, command: Command, core: int | None) -> None:
        # setpriv: a benchmark that is killed takes its servers with it.
        argv = ["setpriv", "--pdeathsig", "TERM"]
        if core is not None:
            argv += ["taskset", "-c", str(core)]
        log = self._scratch / f"{self.name}-{Path(command.argv[0]).name}.log"
        with open(log, "wb") as output:
            process = subprocess.Popen(
                argv + command.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=os.environ | command.environment,
                cwd=self._scratch,
                start_new_session=True,
            )
        self._processes.append(process)
        if command.ready_line is not None:
            pattern = re.compile(command.ready_line.encode(), re.MULTILINE)
            self._await(lambda: pattern.search(log.read_bytes()) is not None, f"print {command.ready_line!r}")
        if command.ready_socket is not None:
            path = command.ready_socket
            self._await(path.exists, f"create {path}")

    def _await(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while not ready():
            if not self.alive():
                raise Unusable(f"{self.title} ended while it started:\n{self.logs()}")
            if time.monotonic() > deadline:
                raise Unusable(f"{self.title} did not {what} within {START_TIMEOUT:.0f} s:\n{self.logs()}")
            time.sleep(0.001)  # short: start-up time is measured through here

    def _accepts(self) -> bool:
        with socket.socket() as sock:
            sock.settimeout(1.0)
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def alive(self) -> bool:
        """Do all programs that were started still run?"""
        return all(process.poll() is None for process in self._processes)

    def logs(self) -> str:
        """The last lines of what the programs printed."""
        parts = []
        for path in sorted(self._scratch.glob(f"{self.name}-*.log")):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            parts.append(f"  {path.name}:\n" + "\n".join(f"    {line}" for line in lines))
        return "\n".join(parts)

    def pids(self) -> set[int]:
        """All processes of the server."""
        return procfs.tree(process.pid for process in self._processes)

    def cpu_seconds(self) -> float:
        """CPU time of all processes so far, user and system."""
        return procfs.seconds(self.pids())

    def stop(self) -> None:
        """End all processes; returns when they are gone. The front goes before what it stands on."""
        descendants = self.pids()
        for process in reversed(self._processes):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
        deadline = time.monotonic() + 1.0  # what outlives its parent is not asked twice
        while left := [pid for pid in descendants if (found := procfs.stat(pid)) and found.state not in "ZX"]:
            if time.monotonic() > deadline:
                for pid in left:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
            time.sleep(0.01)
