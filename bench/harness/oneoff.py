"""Measures without load: memory, idling, start-up, and what the engine says of its isolates."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import procfs, reloads, uploads
from .check import Connection, answering
from .errors import Unusable, WrongAnswer
from .peers import Site
from .rounds import Spread
from .servers import Command, Server, free_port

IDLE_SECONDS = 3.0
STARTS = 10


@dataclass
class OneOff:
    """What was measured; a note says why something was not."""

    #: by server name: a while after start and a few requests, and after all loads
    memory_fresh: dict[str, procfs.Memory] = field(default_factory=dict)
    memory_loaded: dict[str, procfs.Memory] = field(default_factory=dict)
    #: by server name: clock ticks and wake-ups within IDLE_SECONDS
    idle: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: milliseconds from exec to the first 200
    startup: Spread | None = None
    #: as `surus internals --json` prints them
    internals: dict[str, float] = field(default_factory=dict)
    uploads: list[uploads.Row] = field(default_factory=list)
    #: by server name: bytes for each idle connection
    connections: dict[str, float] = field(default_factory=dict)
    connection_count: int = 0
    #: by server name
    reloads: dict[str, reloads.Reloads] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def idle(server: Server) -> tuple[int, int]:
    """Clock ticks used by, and wake-ups of, a server that nobody talks to."""
    time.sleep(0.5)  # the connections of the last load have gone by then
    pids = server.pids()
    ticks, switches = procfs.ticks(pids), procfs.switches(pids)
    time.sleep(IDLE_SECONDS)
    return procfs.ticks(pids) - ticks, procfs.switches(pids) - switches


def startup(surus: Path, site: Path, scratch: Path) -> Spread:
    """Milliseconds from exec of `surus serve` to the first answer with status 200, over STARTS starts."""
    times = [_start_once(surus, site, scratch) for _ in range(STARTS)]
    return Spread(statistics.median(times), min(times), max(times))


def _start_once(surus: Path, site: Path, scratch: Path) -> float:
    port = free_port()
    argv = [str(surus), "serve", str(site), "--listen", f"127.0.0.1:{port}"]
    request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
    server = Server("startup", f"surus serve {site.name}", port, [Command(argv)], scratch)
    # Server.start returns with the first accepted connection; the answer to the request ends the measurement.
    began = time.monotonic()
    try:
        with answering(f"surus serve {site.name}", server):
            server.start(core=None)
            with contextlib.closing(Connection(port)) as client:
                client.send(request)
                answer = client.answer()
            elapsed = (time.monotonic() - began) * 1000
    finally:
        server.stop()
    if answer.status != 200:
        raise WrongAnswer(f"surus serve {site.name}: status {answer.status}")
    return elapsed


def internals(surus: Path) -> dict[str, float]:
    """Memory, creation and switch time of isolates as the engine measures them. Raises Unusable if it cannot."""
    done = subprocess.run(
        [str(surus), "internals", "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[0]
        raise Unusable(f"`surus internals --json` ended with status {done.returncode}: {reason}")
    try:
        values = json.loads(done.stdout)
        return {name: float(value) for name, value in values.items() if isinstance(value, (int, float))}
    except (ValueError, AttributeError) as error:
        raise Unusable(f"`surus internals --json` did not print an object of numbers: {error}") from error


def collect(site: Site, hello: Path, servers: list[Server], wanted: set[str], found: OneOff) -> None:
    """All measures of this file that are wanted, after the loads. `servers`: those of Surus that run."""
    if "idle" in wanted:
        for server in servers:
            found.idle[server.name] = idle(server)
    if "startup" in wanted:
        if not hello.exists():
            found.notes.append(f"start-up time left out: there is no {hello.parent.name}/{hello.name}")
        else:
            try:
                found.startup = startup(site.surus, hello, site.scratch)
            except (WrongAnswer, Unusable) as error:
                found.failures.append(f"start-up: {error}")
    if "internals" in wanted:
        try:
            found.internals = internals(site.surus)
        except (Unusable, OSError, subprocess.SubprocessError) as error:
            found.notes.append(f"isolates left out: {error}")
