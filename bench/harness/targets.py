"""The promises, and whether this run kept them."""

from __future__ import annotations

from dataclasses import dataclass

from .oneoff import IDLE_SECONDS, OneOff
from .rounds import Row, Spread
from .uploads import limit_of

#: wrk or a server is at its end when it uses this share of its core
SATURATED = 0.95

#: least ratio of requests per second to bare hyper, by workload
REQUESTS_TO_LIMIT = {"plaintext": 0.85, "json": 0.85, "pipelined": 0.6}
#: greatest ratio of CPU time per request to bare hyper
CPU_TO_LIMIT = {"plaintext": 1.3, "json": 1.3}
#: least ratio of requests per second to the peers, classic mode
CLASSIC_TO_PEER = 2.5
PEERS = {"nginx-fpm": "nginx + php-fpm", "mod_php": "mod_php"}

#: least ratio of the rate of uploads to bare hyper
UPLOADS_TO_LIMIT = 0.5

STARTUP_MS = 150
#: key of `surus internals --json`, what it is, its greatest value, unit of the report, that unit in units of the key
INTERNALS = (
    ("idle_isolate_bytes", "memory of an idle isolate", 500.0, "KB", 1000.0),
    ("isolate_creation_ns", "creation of an isolate", 1.0, "ms", 1e6),
    ("switch_ns", "switch to another isolate", 2.0, "µs", 1e3),
)


@dataclass(frozen=True)
class Verdict:
    """One promise; `passed` is None when the run cannot tell."""

    what: str
    target: str
    measured: str
    passed: bool | None
    note: str = ""


def verdicts(rows: list[Row], oneoff: OneOff) -> list[Verdict]:
    """Every target that this run has measured something for."""
    found: list[Verdict] = []
    for row in rows:
        found += _against_limit(row)
        found += _against_peers(row)
    for name, (ticks, wakeups) in oneoff.idle.items():
        mode = "classic" if name.endswith("classic") else "coroutine"
        found.append(
            Verdict(
                f"CPU of an idle worker, {mode} mode, {IDLE_SECONDS:.0f} s",
                "0 ticks",
                f"{ticks} ticks, {wakeups} wake-ups",
                ticks == 0,
            )
        )
    for upload in oneoff.uploads:
        ratio = upload.ratio(limit_of(oneoff.uploads, upload))
        if upload.load.server.name.startswith("surus") and ratio is not None:
            mode = "classic" if upload.load.server.name.endswith("classic") else "coroutine"
            what = f"Uploads ({upload.load.title}, {mode} mode): MB/s to bare hyper"
            found.append(Verdict(what, f"≥ {UPLOADS_TO_LIMIT:g}", times(ratio), ratio.median >= UPLOADS_TO_LIMIT))
            with_files = upload.ratio(limit_of(oneoff.uploads, upload, keeps=True))
            if upload.load.keeps and with_files is not None:
                passed = with_files.median >= UPLOADS_TO_LIMIT
                found.append(Verdict(f"{what} that writes files", f"≥ {UPLOADS_TO_LIMIT:g}", times(with_files), passed))
    if (start := oneoff.startup) is not None:
        measured = f"{start.median:.0f} ms ({start.low:.0f}–{start.high:.0f})"
        what = "exec to first 200, `examples/hello`"
        found.append(Verdict(what, f"≤ {STARTUP_MS} ms", measured, start.median <= STARTUP_MS))
    for key, what, most, unit, scale in INTERNALS:
        if key in oneoff.internals:
            value = oneoff.internals[key] / scale
            found.append(Verdict(what, f"≤ {most:g} {unit}", f"{value:.3g} {unit}", value <= most))
    return found


def _against_limit(row: Row) -> list[Verdict]:
    found = []
    what = f"{row.workload.title}, {row.variant}"
    least = REQUESTS_TO_LIMIT.get(row.workload.name)
    ratio = row.ratio("surus", "limit", lambda result: result.requests_per_second)
    if least is not None and ratio is not None:
        kept: bool | None = ratio.median >= least
        bound = _generator_bound(row)
        note = "" if not bound else "wrk was the bottleneck" if kept else "wrk was the bottleneck: the CPU time decides"
        if bound and not kept:
            kept = None
        found.append(Verdict(f"{what}: requests/s to bare hyper", f"≥ {least:g}", times(ratio), kept, note))
    most = CPU_TO_LIMIT.get(row.workload.name)
    ratio = row.ratio("surus", "limit", lambda result: result.cpu_per_request)
    if most is not None and ratio is not None:
        what += ": CPU per request to bare hyper"
        found.append(Verdict(what, f"≤ {most:g}", times(ratio), ratio.median <= most))
    return found


def _against_peers(row: Row) -> list[Verdict]:
    if not row.workload.peers:
        return []
    found = []
    for peer, title in PEERS.items():
        ratio = row.ratio("surus-classic", peer, lambda result: result.requests_per_second)
        if ratio is not None:
            what = f"{row.workload.title}, {row.variant}: requests/s to {title}"
            found.append(Verdict(what, f"≥ {CLASSIC_TO_PEER:g}", times(ratio), ratio.median >= CLASSIC_TO_PEER))
    return found


def _generator_bound(row: Row) -> bool:
    """Was wrk at its end while Surus was not?"""
    generator = row.spread("surus", lambda result: result.generator_load)
    server = row.spread("surus", lambda result: result.server_load)
    return generator is not None and server is not None and generator.median >= SATURATED > server.median


def times(ratio: Spread | None) -> str:
    """A ratio as the report shows it."""
    return "–" if ratio is None else f"{ratio.median:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"
