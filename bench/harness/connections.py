"""What a client costs that is connected and silent."""

from __future__ import annotations

import resource
import time

from . import procfs
from .check import Connection, answering, check, compare
from .errors import Unusable
from .servers import Server
from .workloads import Exchange

#: descriptors that the harness needs for other things
SPARE = 200


def allow(count: int) -> None:
    """So many connections for this process and all that it starts. Raises Unusable if that is not allowed."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < count + SPARE:
        raise Unusable(f"{count} connections need a limit of {count + SPARE} open files (ulimit -Hn), here it is {most}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * count), most) if most > 2 * count else (most, most))


def idle(server: Server, exchange: Exchange, count: int) -> float:
    """Bytes (PSS of all processes) for each of `count` kept connections that have had an answer and are silent."""
    check(server.port, [exchange] * 4, 1, 64)  # what it needs once
    time.sleep(0.5)
    before = procfs.memory(server.pids()).total_pss
    clients: list[Connection] = []
    try:
        for _ in range(count):
            with answering(f"connection {len(clients) + 1}", server):
                clients.append(Connection(server.port))
                _ask(clients[-1], exchange)
        time.sleep(0.5)
        grown = procfs.memory(server.pids()).total_pss - before
        # All of them are there.
        for number, client in enumerate(clients, 1):
            with answering(f"connection {number}, after it was silent", server):
                _ask(client, exchange)
    finally:
        for client in clients:
            client.close()
    return grown * 1024 / count


def _ask(client: Connection, exchange: Exchange) -> None:
    client.send(exchange.request)
    compare(exchange, client.answer())
