"""Is every answer right? A small HTTP client that looks at all of it: status, type, body and their order."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from .errors import WrongAnswer
from .servers import Server
from .workloads import Exchange

TIMEOUT = 10.0  # seconds


@dataclass(frozen=True)
class Answer:
    """A response as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes
    #: bytes on the wire, head and framing included
    size: int


class Connection:
    """A client connection that reads one answer at a time."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        self._socket.settimeout(TIMEOUT)
        self._buffer = b""
        self._read = 0

    def send(self, data: bytes) -> None:
        """Write requests."""
        self._socket.sendall(data)

    def wait(self, seconds: float) -> None:
        """From here on, wait this long for each read and write."""
        self._socket.settimeout(seconds)

    def close(self) -> None:
        """Leave."""
        self._socket.close()

    def answer(self) -> Answer:
        """Read the next response."""
        before = self._read
        head = self._until(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        status = int(status_line.split(" ", 2)[1])
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = self._chunks()
        else:
            body = self._exactly(int(headers["content-length"]))
        return Answer(status, headers, body, self._read - before)

    def head(self) -> list[str]:
        """The header lines of the next response; its body is left unread."""
        return self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")[1:]

    def _chunks(self) -> bytes:
        body = b""
        while (size := int(self._until(b"\r\n").split(b";")[0], 16)) > 0:
            body += self._exactly(size)
            self._until(b"\r\n")
        self._until(b"\r\n")
        return body

    def _until(self, mark: bytes) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            self._fill()
        return self._take(end + len(mark))[: -len(mark)]

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        self._read += size
        return data

    def _fill(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection in the middle")
        self._buffer += data


@contextlib.contextmanager
def answering(what: str = "no proper HTTP answer", server: Server | None = None) -> Iterator[None]:
    """Whatever goes wrong inside with a connection, or with reading an answer, is a WrongAnswer, with the server's log."""
    try:
        yield
    except (OSError, ValueError, KeyError, IndexError) as error:
        logs = f"\n{server.logs()}" if server else ""
        raise WrongAnswer(f"{what}: {type(error).__name__}: {error}{logs}") from error


def check(port: int, exchanges: list[Exchange], pipeline: int, connections: int) -> Answer:
    """Send a sample of the requests over many connections at once; every answer must be right.

    All connections have their requests in flight before the first answer is read, so answers that get mixed up between
    connections or within a pipeline show. Returns one answer, as a sample.
    """
    batches = sample(exchanges, pipeline, connections)
    clients: list[Connection] = []
    answer: Answer | None = None
    try:
        with answering():
            for batch in batches:
                clients.append(Connection(port))
                clients[-1].send(b"".join(exchange.request for exchange in batch))
            for client, batch in zip(clients, batches):
                for exchange in batch:
                    answer = client.answer()
                    compare(exchange, answer)
    finally:
        for client in clients:
            client.close()
    if answer is None:
        raise WrongAnswer("nothing was asked")
    return answer


def sample(exchanges: list[Exchange], pipeline: int, connections: int) -> list[list[Exchange]]:
    """One batch for each connection, from all over the list; at least four requests for a connection."""
    depth = max(pipeline, 4)
    step = max(1, len(exchanges) // connections)
    return [
        [exchanges[(n * step + i) % len(exchanges)] for i in range(depth)]
        for n in range(connections)
    ]


def compare(exchange: Exchange, answer: Answer) -> None:
    """Raise WrongAnswer unless the answer is the expected one."""
    target = exchange.request.split(b" ", 2)[1].decode()
    if answer.status != 200:
        raise WrongAnswer(f"GET {target}: status {answer.status}, body {answer.body[:200]!r}")
    if answer.body != exchange.body:
        raise WrongAnswer(f"GET {target}: body {answer.body[:200]!r} instead of {exchange.body!r}")
    content_type = answer.headers.get("content-type", "").split(";")[0].strip()
    if content_type != exchange.content_type:
        raise WrongAnswer(f"GET {target}: content-type {content_type!r} instead of {exchange.content_type!r}")
