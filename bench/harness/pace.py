"""A client that asks at a steady pace whatever its answers take: what a visitor sees beside a load."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from .check import Connection, answering, compare
from .servers import Server
from .workloads import Exchange

PER_SECOND = 50


@dataclass(frozen=True)
class Pace:
    """Milliseconds from when a request was due to the end of its answer."""

    p50: float
    p99: float
    worst: float
    count: int


def ask(server: Server, exchange: Exchange, core: int, seconds: float) -> Pace:
    """Send PER_SECOND requests a second on one kept connection, from `core`. Raises WrongAnswer for anything else."""
    times: list[float] = []
    with answering(server=server), contextlib.closing(Connection(server.port)) as client:
        with _first_on(core):
            began = time.monotonic()
            for number in range(int(seconds * PER_SECOND)):
                # A late answer delays the next request, but not the time that it was due: no wait is left out.
                due = began + number / PER_SECOND
                time.sleep(max(0.0, due - time.monotonic()))
                client.send(exchange.request)
                answer = client.answer()
                times.append((time.monotonic() - due) * 1000)
                compare(exchange, answer)
    times.sort()
    return Pace(times[len(times) // 2], times[len(times) * 99 // 100], times[-1], len(times))


@contextlib.contextmanager
def _first_on(core: int) -> Iterator[None]:
    """On this core, before whoever else wants it: the wait for the core is the client's and not the server's."""
    cores, policy = os.sched_getaffinity(0), os.sched_getscheduler(0)
    os.sched_setaffinity(0, {core})
    try:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, policy, os.sched_param(0))
        os.sched_setaffinity(0, cores)
