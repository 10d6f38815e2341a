"""What the servers are asked, byte for byte, and what they must answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

# More different requests than a server's cache of parsed or answered requests is likely to hold.
VARIANTS = 20_000
IDENTICAL = "identical"
VARYING = "varying"


@dataclass(frozen=True)
class Exchange:
    """One request and the only right answer to it (the status is 200)."""

    request: bytes
    content_type: str
    body: bytes


@dataclass(frozen=True)
class Workload:
    """One kind of request, and who serves it."""

    name: str
    title: str
    path: str
    content_type: str
    body: bytes
    #: requests sent in one write before the answers are awaited
    pipeline: int = 1
    #: served by Surus in classic mode instead of coroutine mode
    classic: bool = False
    #: a promise compares Surus with the classic peers
    peers: bool = False
    #: send what a browser sends, instead of nothing but Host
    browser_headers: bool = False

    def exchanges(self, variant: str, host: str) -> list[Exchange]:
        """The requests of a load; a multiple of `pipeline`. They go round and round."""
        if variant == IDENTICAL:
            return [self._exchange(host, 4242, vary=False)] * self.pipeline
        return [self._exchange(host, 100_000 + n, vary=True) for n in range(VARIANTS)]

    def _exchange(self, host: str, n: int, vary: bool) -> Exchange:
        target = self.path.format(id=n)
        body = self.body
        if "{id}" in self.path:
            body = json.dumps({"id": str(n)}, separators=(",", ":")).encode()
        if vary:
            target += f"?n={n}&page={n % 97}"
        headers = {"Host": host}
        if self.browser_headers:
            headers |= browser_headers(n)
        elif vary:
            headers["X-Request-Id"] = f"{n * 2_654_435_761 % 2**32:08x}"
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return Exchange(f"GET {target} HTTP/1.1\r\n{head}\r\n".encode(), self.content_type, body)


def browser_headers(n: int) -> dict[str, str]:
    """Headers as a browser sends them; different values for different n."""
    languages = ("de-DE,de;q=0.9", "en-GB,en;q=0.8", "fr-FR,fr;q=0.7", "pt-BR,pt;q=0.6", "ja-JP,ja;q=0.5")
    return {
        "User-Agent": f"Mozilla/5.0 (X11; Linux x86_64; rv:{100 + n % 40}.0) Gecko/20100101 Firefox/{100 + n % 40}.0",
        "Accept": "text/html,application/json;q=0.9,*/*;q=0.8",
        "Accept-Language": languages[n % len(languages)],
        "Accept-Encoding": "identity",
        "Cookie": f"session={n * 11_400_714_819_323_198_485 % 2**64:016x}; theme={'dark' if n % 2 else 'light'}",
        "X-Request-Id": f"{n * 2_654_435_761 % 2**32:08x}",
    }


#: what the files have that servers send; `make_files` writes them
FILE = b"0123456789abcdef" * 65536


def make_files(folder: Path) -> None:
    """The files of the workloads, for servers that have them on disk."""
    for workload in WORKLOADS:
        if workload.path.endswith(".txt"):
            (folder / workload.path.lstrip("/")).write_bytes(workload.body)


_JSON = b'{"message":"Hello, World!"}'
WORKLOADS = (
    Workload("plaintext", "Plaintext", "/plaintext", "text/plain", b"Hello, World!"),
    Workload("pipelined", "Plaintext, pipelined ×16", "/plaintext", "text/plain", b"Hello, World!", pipeline=16),
    Workload("json", "JSON", "/json", "application/json", _JSON),
    Workload("route", "Route with a parameter", "/users/{id}", "application/json", b"", browser_headers=True),
    Workload("classic", 'Classic `<?php echo "ok";`', "/ok.php", "text/html", b"ok", classic=True, peers=True),
    Workload("small", "File of 1 KB", "/small.txt", "text/plain", FILE[:1024], classic=True),
    Workload("large", "File of 1 MB", "/large.txt", "text/plain", FILE, classic=True),
)
