"""What a visitor sees of `surus reload`, once a second."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from .errors import WrongAnswer
from .pace import Pace, ask
from .servers import Server
from .workloads import Exchange

PATIENCE = 60.0  # seconds for a reload


@dataclass(frozen=True)
class Reloads:
    """The same load without and with reloads, and how many there were."""

    without: Pace
    beside: Pace
    count: int


def measure(server: Server, surus: Path, exchange: Exchange, core: int, seconds: int) -> Reloads:
    """Raises WrongAnswer for a request that is not answered as ever, and for a reload that fails."""
    without = ask(server, exchange, core, seconds)
    ended = threading.Event()
    count = 0
    failures: list[str] = []

    def reload() -> None:
        nonlocal count
        argv = ["taskset", "-c", str(core), str(surus), "reload", "--pid", str(server.pid)]
        while not ended.wait(1.0):
            count += 1
            try:
                done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
                if done.returncode != 0:
                    failures.append(f"`surus reload` ended with status {done.returncode}: {done.stderr.strip()}")
            except subprocess.TimeoutExpired:
                failures.append(f"`surus reload` did not end within {PATIENCE:g} s")

    thread = threading.Thread(target=reload)
    thread.start()
    try:
        beside = ask(server, exchange, core, seconds)
    finally:
        ended.set()
        thread.join()
    if failures:
        raise WrongAnswer(failures[0])
    return Reloads(without, beside, count)
