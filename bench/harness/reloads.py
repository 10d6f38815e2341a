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
    outcomes: list[subprocess.CompletedProcess[str]] = []

    def reload() -> None:
        argv = ["taskset", "-c", str(core), str(surus), "reload", "--pid", str(server.pid)]
        while not ended.wait(1.0):
            outcomes.append(subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False))

    thread = threading.Thread(target=reload)
    thread.start()
    try:
        beside = ask(server, exchange, core, seconds)
    finally:
        ended.set()
        thread.join()
    for outcome in outcomes:
        if outcome.returncode != 0:
            raise WrongAnswer(f"`surus reload` ended with status {outcome.returncode}: {outcome.stderr.strip()}")
    return Reloads(without, beside, len(outcomes))
