"""Large uploads, many at a time: how fast they are taken, and what a visitor sees beside them."""

from __future__ import annotations

import multiprocessing
import os
import re
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe

from . import procfs
from .check import answering
from .errors import WrongAnswer
from .pace import Pace, ask
from .rounds import DISTURBED, Spread
from .servers import Server
from .workloads import IDENTICAL, WORKLOADS

SIZE = 20 << 20
AT_A_TIME = 32
PATIENCE = 20.0  # seconds without a byte
#: seconds before a measurement. What a virtual machine's kernel has not used lately its host may have to get first,
#: which takes ten times as long as to use it.
WARM_UP = 1

BOUNDARY = "----surus-bench"
HEAD = (
    f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n'
    "Content-Type: application/octet-stream\r\n\r\n"
)


@dataclass(frozen=True)
class Load:
    """One kind of upload, to one server."""

    server: Server
    title: str
    path: str
    form: bool
    #: bare hyper takes any body, and says how long all of it was
    counts_all: bool = False
    #: bodies are written to files
    keeps: bool = False

    def request(self) -> tuple[bytes, bytes]:
        """The request and the only right body of its answer."""
        body = os.urandom(1 << 20) * (SIZE >> 20)
        content_type = "application/octet-stream"
        if self.form:
            body = HEAD.encode() + body + f"\r\n--{BOUNDARY}--\r\n".encode()
            content_type = f"multipart/form-data; boundary={BOUNDARY}"
        head = f"POST {self.path} HTTP/1.1\r\nHost: {self.server.host}\r\nContent-Type: {content_type}\r\n"
        answer = str(len(body) if self.counts_all else SIZE).encode()
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body, answer


@dataclass(frozen=True)
class Result:
    """What one round showed."""

    #: bytes per second
    rate: float
    #: CPU seconds of all processes of the server for one upload
    cpu: float
    alone: Pace
    beside: Pace
    #: share of the time that others took from the server's core
    disturbance: float


@dataclass
class Row:
    """A load by rounds, next to those of the limit with the same kind of body."""

    load: Load
    results: dict[int, Result] = field(default_factory=dict)
    failure: str | None = None

    def ratio(self, limit: "Row | None") -> Spread | None:
        """Of the rates, taken within a round."""
        if limit is None or limit is self:
            return None
        common = self.results.keys() & limit.results.keys()
        return Spread.of([self.results[n].rate / limit.results[n].rate for n in sorted(common)])

    def disturbed(self) -> bool:
        """Did others use the server's core in any round?"""
        return any(result.disturbance > DISTURBED for result in self.results.values())


def limit_of(rows: list[Row], row: Row, keeps: bool = False) -> Row | None:
    """The yardstick of a row: bare hyper's with the same kind of body, which it forgets or writes to a file."""
    limits = (other for other in rows if other.load.counts_all and other.load.keeps == keeps)
    return next((other for other in limits if other.load.form == row.load.form), None)


def measure(rows: list[Row], cores: tuple[int, int], rounds: int, seconds: int) -> None:
    """Fill the rows, round by round, one load next to the other. A failure ends its row."""
    for number in range(rounds):
        for row in rows if number % 2 == 0 else reversed(rows):
            if row.failure is not None:
                continue
            what = f"upload     {row.load.title:9} {row.load.server.name:13} {number + 1:>7}"
            try:
                result = row.results[number] = _round(row.load, cores, seconds)
            except WrongAnswer as error:
                row.failure = str(error)
                print(f"{what}  FAILED: {error}", file=sys.stderr, flush=True)
                continue
            print(
                f"{what}  {result.rate / 1e6:9,.0f} MB/s  {result.cpu * 1000:5.1f} ms/upload  visitor p99 "
                f"{result.alone.p99:.2f} ms, beside {result.beside.p99:.2f} ms  others {result.disturbance:3.0%}",
                file=sys.stderr,
                flush=True,
            )


def _round(load: Load, cores: tuple[int, int], seconds: int) -> Result:
    request, right = load.request()
    hello = next(each for each in WORKLOADS if each.name == "plaintext").exchanges(IDENTICAL, load.server.host)[0]
    with answering("an upload", load.server):
        _send(load.server.port, request, right, 0, 1)  # one, to see that it is taken
    alone = ask(load.server, hello, cores[1], seconds)
    with _sending(load, request, right, cores[1], WARM_UP) as wait:
        wait()
    cpu, busy, began = load.server.cpu_seconds(), procfs.core_busy(cores[0]), time.monotonic()
    with _sending(load, request, right, cores[1], seconds) as wait:
        count, elapsed = wait()
    cpu = load.server.cpu_seconds() - cpu
    disturbance = (procfs.core_busy(cores[0]) - busy - cpu) / (time.monotonic() - began)
    with _sending(load, request, right, cores[1], seconds) as wait:
        beside = ask(load.server, hello, cores[1], seconds)
        wait()
    if not load.server.alive():
        raise WrongAnswer(f"the server died under load:\n{load.server.logs()}")
    return Result(count * SIZE / elapsed, cpu / count, alone, beside, max(0.0, disturbance))


@contextmanager
def _sending(load: Load, request: bytes, right: bytes, core: int, seconds: int) -> Iterator:
    """Uploads from another process; yields what waits for its end and returns how many there were, in which time."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, load.server.port, request, right, core, seconds), daemon=True)
    process.start()
    sender.close()

    def wait() -> tuple[int, float]:
        try:
            found = receiver.recv()
        except EOFError as error:
            raise WrongAnswer("the client that uploads died") from error
        if isinstance(found, str):
            raise WrongAnswer(f"{found}\n{load.server.logs()}")
        return found

    try:
        yield wait
    finally:
        process.kill()
        process.join()


def _child(result: Pipe, port: int, request: bytes, right: bytes, core: int, seconds: int) -> None:
    os.sched_setaffinity(0, {core})
    os.nice(10)
    try:
        result.send(_send(port, request, right, seconds, AT_A_TIME))
    except (OSError, WrongAnswer) as error:
        result.send(str(error))


class _Client:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.sent = 0
        self.answer = b""


def _send(port: int, request: bytes, right: bytes, seconds: float, at_a_time: int) -> tuple[int, float]:
    """How many uploads were answered, and seconds from the first byte to the last answer. New ones begin for `seconds`."""
    view = memoryview(request)
    began, done = time.monotonic(), 0
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(at_a_time):
            client = _Client(port)
            stack.enter_context(client.socket)
            selector.register(client.socket, selectors.EVENT_WRITE, client)
        while selector.get_map():
            events = selector.select(PATIENCE)
            if not events:
                raise WrongAnswer(f"nothing moves for {PATIENCE:.0f} s")
            for key, event in events:
                client = key.data
                if event & selectors.EVENT_WRITE:
                    client.sent += client.socket.send(view[client.sent : client.sent + (1 << 20)])
                    if client.sent == len(view):
                        selector.modify(client.socket, selectors.EVENT_READ, client)
                elif _complete(client, right):
                    done += 1
                    client.sent, client.answer = 0, b""
                    if time.monotonic() < began + seconds:
                        selector.modify(client.socket, selectors.EVENT_WRITE, client)
                    else:
                        selector.unregister(client.socket)
    return done, time.monotonic() - began


def _complete(client: _Client, right: bytes) -> bool:
    data = client.socket.recv(65536)
    client.answer += data
    head, found, body = client.answer.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    if data and (not found or (length and len(body) < int(length[1]))):
        return False
    if not head.startswith(b"HTTP/1.1 200 ") or body != right:
        raise WrongAnswer(f"an upload was answered {client.answer[:300]!r} instead of {right!r}")
    return True
