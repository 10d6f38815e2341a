"""A server whose answers a test makes up."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import NamedTuple


class Asked(NamedTuple):
    """One request: how many there were with it, its path, and the length of its body."""

    number: int
    path: str
    length: int


def http(body: str, status: str = "200 OK", content_type: str = "text/plain") -> bytes:
    """A whole answer."""
    return f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


class FakeServer:
    """Sends what `answer` makes of each request; for the rest it is as a Server that runs in this process."""

    host = "h"
    pid = 0

    def __init__(self, answer: Callable[[Asked], bytes]) -> None:
        self._answer = answer
        self._count = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # A client that has seen a wrong answer hangs up in the middle.
        with client, client.makefile("rb") as file, contextlib.suppress(OSError):
            while request := file.readline():
                length = 0
                while (line := file.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                got = len(file.read(length))
                with self._lock:
                    self._count += 1
                    number = self._count
                client.sendall(self._answer(Asked(number, request.split(b" ")[1].decode(), got)))

    def pids(self) -> set[int]:
        return {os.getpid()}

    def alive(self) -> bool:
        return True

    def cpu_seconds(self) -> float:
        return 0.0

    def logs(self) -> str:
        return "its log"

    def close(self) -> None:
        # Else the thread that waits for a client would take one more.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
