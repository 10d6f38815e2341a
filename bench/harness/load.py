"""One load: wrk on its own core against one server, and what it cost the server."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from . import procfs
from .check import check
from .errors import WrongAnswer
from .peers import CONNECTIONS
from .servers import Server
from .workloads import Workload

SCRIPT = Path(__file__).with_name("wrk.lua")

#: about as much is compared before and after a load, at most
CHECKED_BYTES = 16 << 20


@dataclass(frozen=True)
class Result:
    """What one load showed."""

    requests_per_second: float
    #: milliseconds; 0 where wrk has no account of it
    p50: float
    p99: float
    #: microseconds of CPU time, user and system, over all processes of the server
    cpu_per_request: float
    #: share of one core that the server and wrk used
    server_load: float
    generator_load: float
    #: share of the time that others took from the server's or wrk's core, whichever lost more
    disturbance: float
    #: bytes of one answer, head included
    answer_size: float


@dataclass(frozen=True)
class Bench:
    """What is the same for all loads."""

    server_core: int
    generator_core: int
    raw: Path
    scratch: Path

    def run(self, server: Server, workload: Workload, variant: str, seconds: int, label: str) -> Result:
        """Check, load, check again. Raises WrongAnswer for anything but right answers all along."""
        exchanges = workload.exchanges(variant, server.host)
        checked = min(CONNECTIONS, max(1, CHECKED_BYTES // (1 + len(workload.body))))
        size = check(server.port, exchanges, workload.pipeline, checked).size
        batches = [
            b"".join(exchange.request for exchange in exchanges[n : n + workload.pipeline])
            for n in range(0, len(exchanges), workload.pipeline)
        ]
        requests = self.scratch / "requests.bin"
        requests.write_bytes(b"\0".join(batches))
        raw = self.raw / f"{workload.name}-{variant}-{server.name}-{label}.txt"
        result = self._wrk(server, requests, seconds, raw, pending=CONNECTIONS * workload.pipeline, size=size)
        if not server.alive():
            raise WrongAnswer(f"the server died under load:\n{server.logs()}")
        check(server.port, exchanges, workload.pipeline, checked)
        return result

    def _wrk(self, server: Server, requests: Path, seconds: int, raw: Path, pending: int, size: int) -> Result:
        argv = ["taskset", "-c", str(self.generator_core), "wrk", "--threads", "1"]
        argv += ["--connections", str(CONNECTIONS), "--duration", f"{seconds}s", "--timeout", "5s", "--latency"]
        argv += ["--script", str(SCRIPT), f"http://{server.host}/"]
        cores = (self.server_core, self.generator_core)
        busy_before = [procfs.core_busy(core) for core in cores]
        generator_before = _children_seconds()
        server_before = server.cpu_seconds()
        started = time.monotonic()
        done = subprocess.run(
            argv,
            env=os.environ | {"BENCH_REQUESTS": str(requests)},
            capture_output=True,
            text=True,
            timeout=seconds + 60,
            check=False,
        )
        elapsed = time.monotonic() - started
        server_seconds = server.cpu_seconds() - server_before
        generator_seconds = _children_seconds() - generator_before
        busy = [procfs.core_busy(core) - before for core, before in zip(cores, busy_before)]
        raw.write_text(f"$ {' '.join(argv)}\n{done.stdout}{done.stderr}\nserver CPU {server_seconds:.2f} s\n")

        summary = parse(done.stdout, done.returncode, done.stderr)
        count = summary["requests"]
        compare_bytes(summary["bytes"], count, size, pending)
        return Result(
            requests_per_second=count / summary["microseconds"] * 1e6,
            p50=summary["p50"] / 1000,
            p99=summary["p99"] / 1000,
            cpu_per_request=server_seconds / count * 1e6,
            server_load=server_seconds / elapsed,
            generator_load=generator_seconds / elapsed,
            disturbance=max(0.0, busy[0] - server_seconds, busy[1] - generator_seconds) / elapsed,
            answer_size=size,
        )


def parse(output: str, status: int, errors: str) -> dict[str, int]:
    """The line that wrk.lua printed. Raises WrongAnswer for errors and for no answers at all."""
    lines = [line for line in output.splitlines() if line.startswith("BENCH ")]
    if status != 0 or len(lines) != 1:
        raise WrongAnswer(f"wrk failed with status {status}: {errors.strip() or output.strip()}")
    summary: dict[str, int] = json.loads(lines[0].removeprefix("BENCH "))
    kinds = ("connect", "read", "write", "status", "timeout")
    if failed := {kind: summary[kind] for kind in kinds if summary[kind] > 0}:
        listed = ", ".join(f"{count} {'non-2xx' if kind == 'status' else kind}" for kind, count in failed.items())
        raise WrongAnswer(f"errors under load: {listed} (of {summary['requests']} requests)")
    if summary["requests"] == 0:
        raise WrongAnswer("0 requests were answered")
    return summary


def compare_bytes(received: int, answers: int, size: int, pending: int) -> None:
    """Raise WrongAnswer when the bytes of a load are not those of as many right answers.

    wrk does not look at bodies. All answers of a load have one length, so wrong ones show here. At the end of a load up
    to `pending` answers have been read, wholly or in part, but not counted.
    """
    if not 0 <= received - answers * size <= pending * size:
        mean = received / answers
        raise WrongAnswer(f"answers under load have {mean:.1f} bytes on average, checked ones have {size}")


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
