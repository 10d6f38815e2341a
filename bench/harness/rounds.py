"""Interleaving: in each round every server is loaded next to the ones it is compared with.

The speed of a machine, a virtual one above all, drifts by a third within a minute. A ratio of two loads taken seconds
apart survives that, a ratio of two averages does not.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from .errors import WrongAnswer
from .load import Bench, Result
from .servers import Server
from .workloads import Workload

#: a load is disturbed when others took more than this share of its core
DISTURBED = 0.07


@dataclass(frozen=True)
class Spread:
    """Median with smallest and largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread | None:
        """None for no values."""
        return cls(statistics.median(values), min(values), max(values)) if values else None


@dataclass
class Row:
    """A workload in one variant: the results of each server by round."""

    workload: Workload
    variant: str
    results: dict[str, dict[int, Result]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def rounds(self) -> list[int]:
        """The rounds that count: the quiet ones if at least half of all were quiet, else all."""
        seen = sorted({number for by_round in self.results.values() for number in by_round})
        quiet = [number for number in seen if self._quiet(number)]
        return quiet if len(quiet) >= math.ceil(len(seen) / 2) else seen

    def disturbed(self) -> bool:
        """Do rounds count in which others used the cores?"""
        return not all(self._quiet(number) for number in self.rounds())

    def _quiet(self, number: int) -> bool:
        return all(
            by_round[number].disturbance <= DISTURBED for by_round in self.results.values() if number in by_round
        )

    def spread(self, server: str, value: Callable[[Result], float]) -> Spread | None:
        """A figure of one server over the rounds."""
        by_round = self.results.get(server, {})
        return Spread.of([value(by_round[number]) for number in self.rounds() if number in by_round])

    def ratio(self, server: str, base: str, value: Callable[[Result], float]) -> Spread | None:
        """A figure of one server divided by that of another in the same round."""
        ours, theirs = self.results.get(server, {}), self.results.get(base, {})
        common = [number for number in self.rounds() if number in ours and number in theirs]
        # A load too short for the clock may show no CPU time at all.
        return Spread.of([value(ours[n]) / value(theirs[n]) for n in common if value(theirs[n]) > 0])


def measure(
    bench: Bench,
    rows: list[Row],
    taking_part: Callable[[Workload], list[Server]],
    rounds: int,
    seconds: int,
    warm_up: bool,
) -> None:
    """Fill the rows, round by round. A failure is noted in the row; that server is left out of the row from then on."""
    if warm_up:
        warmed: set[tuple[str, str]] = set()
        for row in rows:
            for server in taking_part(row.workload):
                if (server.name, row.workload.name) not in warmed:
                    warmed.add((server.name, row.workload.name))
                    _attempt(bench, row, server, 1, "warm-up")
    for number in range(rounds):
        for row in rows:
            servers = taking_part(row.workload)
            # Back and forth, so that no server is always the one after the same other.
            for server in servers if number % 2 == 0 else reversed(servers):
                result = _attempt(bench, row, server, seconds, str(number + 1))
                if result is not None:
                    row.results.setdefault(server.name, {})[number] = result


def _attempt(bench: Bench, row: Row, server: Server, seconds: int, label: str) -> Result | None:
    if server.name in row.failures:
        return None
    what = f"{row.workload.name:10} {row.variant:9} {server.name:13} {label:>7}"
    try:
        result = bench.run(server, row.workload, row.variant, seconds, label)
    except WrongAnswer as error:
        row.failures[server.name] = str(error)
        print(f"{what}  FAILED: {error}", file=sys.stderr, flush=True)
        return None
    print(
        f"{what}  {result.requests_per_second:9,.0f} req/s  p50 {result.p50:7.2f} ms  p99 {result.p99:7.2f} ms  "
        f"{result.cpu_per_request:7.2f} µs/req  server {result.server_load:4.0%}  wrk {result.generator_load:4.0%}  "
        f"others {result.disturbance:3.0%}",
        file=sys.stderr,
        flush=True,
    )
    return result
