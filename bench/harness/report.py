"""The Markdown report."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from .oneoff import OneOff
from .pace import PER_SECOND
from .peers import CONNECTIONS
from .rounds import DISTURBED, Row
from .targets import SATURATED, Verdict, times
from .uploads import AT_A_TIME, SIZE, limit_of


@dataclass(frozen=True)
class Run:
    """What a report is made of."""

    machine: str
    date: str
    command: str
    rounds: int
    seconds: int
    cores: tuple[int, int]
    #: name to title of the servers, in the order of the tables
    titles: dict[str, str]
    rows: list[Row]
    oneoff: OneOff
    verdicts: list[Verdict]
    plots: list[tuple[str, str]]

    def failures(self) -> list[str]:
        """Everything that makes the run fail."""
        found = [
            f"{row.workload.title}, {row.variant}, {self.titles[name]}: {reason}"
            for row in self.rows
            for name, reason in row.failures.items()
        ]
        found += [
            f"uploads ({row.load.title}), {self.titles[row.load.server.name]}: {row.failure}"
            for row in self.oneoff.uploads
            if row.failure is not None
        ]
        return found + self.oneoff.failures


def markdown(run: Run) -> str:
    """The whole report."""
    parts = ["# Benchmark results", _preface(run)]
    if failures := run.failures():
        listed = "\n".join(f"- {failure.splitlines()[0]}" for failure in failures)
        parts.append(f"**This run failed.**\n\n{listed}")
    if run.verdicts:
        parts.append("## Targets\n\n" + _targets(run.verdicts))
    if run.rows:
        parts.append("## Loads\n\n" + "\n".join(f"![{title}]({file})" for title, file in run.plots))
        parts += [_row(run, row) for row in run.rows]
    if run.oneoff.uploads:
        parts.append(f"## {AT_A_TIME} uploads of {SIZE >> 20} MB at a time\n\n" + _uploads(run))
    if run.oneoff.connections:
        parts.append(f"## {run.oneoff.connection_count:,} idle connections\n\n" + _connections(run))
    if run.oneoff.reloads:
        parts.append("## A reload each second\n\n" + _reloads(run))
    if run.oneoff.memory_fresh:
        parts.append("## Memory\n\n" + _memory(run))
    if run.oneoff.notes:
        parts.append("## Left out\n\n" + "\n".join(f"- {note}" for note in run.oneoff.notes))
    return "\n\n".join(parts) + "\n"


def _preface(run: Run) -> str:
    text = f"{run.date} · {run.machine}\n\nReproduce: `{run.command}`"
    if run.rows:
        text += (
            f". {run.rounds} rounds of {run.seconds} s, {CONNECTIONS} kept connections; all processes of a server on "
            f"core {run.cores[0]}, wrk with one thread on core {run.cores[1]}. Cells are medians over the rounds; ratios "
            "are taken within a round, between loads made next to each other, and given as median (min–max). CPU per "
            "request is user and system time of all processes of the server. *Varying* requests differ in query string "
            "and headers, and in the path where it has a parameter. Every server is checked for right answers before "
            "and after each load."
        )
    return text


def _targets(verdicts: list[Verdict]) -> str:
    marks = {True: "pass", False: "**fail**", None: "undecided"}
    lines = ["| Promise (one worker on one core) | Target | Measured | |", "|---|---|---|---|"]
    for verdict in verdicts:
        note = f" ({verdict.note})" if verdict.note else ""
        lines.append(f"| {verdict.what} | {verdict.target} | {verdict.measured} | {marks[verdict.passed]}{note} |")
    return "\n".join(lines)


def _row(run: Run, row: Row) -> str:
    with_limit = "limit" in row.results
    lines = [
        f"### {row.workload.title}, {row.variant} requests",
        "",
        "| Server | requests/s | p50 ms | p99 ms | CPU µs/request | requests/s to limit | CPU to limit | bytes/answer |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    marks: set[str] = set()
    for name, title in run.titles.items():
        if name in row.failures:
            lines.append(f"| {title} | failed | | | | | | |")
            continue
        speed = row.spread(name, lambda result: result.requests_per_second)
        p50 = row.spread(name, lambda result: result.p50)
        p99 = row.spread(name, lambda result: result.p99)
        cpu = row.spread(name, lambda result: result.cpu_per_request)
        size = row.spread(name, lambda result: result.answer_size)
        if speed is None or p50 is None or p99 is None or cpu is None or size is None:
            continue
        generator = row.spread(name, lambda result: result.generator_load)
        mark = ""
        if generator is not None and generator.median >= SATURATED:
            mark = " *"
            marks.add("\\* wrk used its whole core: the server can do more.")
        ratios = ["", ""]
        if with_limit and name != "limit":
            ratios[0] = times(row.ratio(name, "limit", lambda result: result.requests_per_second))
            ratios[1] = times(row.ratio(name, "limit", lambda result: result.cpu_per_request))
        lines.append(
            f"| {title} | {speed.median:,.0f}{mark} | {latency(p50.median)} | {latency(p99.median)} | {cpu.median:.2f} "
            f"| {ratios[0]} | {ratios[1]} | {size.median:.0f} |"
        )
    if row.disturbed():
        marks.add(f"Other processes took more than {DISTURBED:.0%} of a core in most rounds: read with care.")
    counted, taken = len(row.rounds()), len({n for by_round in row.results.values() for n in by_round})
    if counted < taken:
        marks.add(f"{counted} of {taken} rounds count; others took more than {DISTURBED:.0%} of a core in the rest.")
    return "\n".join(lines + [""] + sorted(marks)).rstrip()


def latency(milliseconds: float) -> str:
    """wrk has no account of very short waits."""
    return f"{milliseconds:.2f}" if milliseconds > 0 else "n/a"


def _uploads(run: Run) -> str:
    lines = [
        "Bare hyper forgets what it has read, or writes it to a file; the others give PHP a file, except Surus in coroutine mode, which"
        f" streams raw bodies to PHP. A visitor asks for the plaintext {PER_SECOND} times a second, alone and beside the uploads.",
        "",
        "| Server | body | MB/s | to limit | to limit with files | CPU ms/upload | visitor's p99 ms | beside uploads |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    marks: set[str] = set()
    for row in run.oneoff.uploads:
        title = run.titles[row.load.server.name]
        if row.load.counts_all and row.load.keeps:
            title += ", to a file"
        found = list(row.results.values())
        if row.failure is not None or not found:
            lines.append(f"| {title} | {row.load.title} | failed | | | | | |")
            continue
        ratio = row.ratio(limit_of(run.oneoff.uploads, row))
        with_files = row.ratio(limit_of(run.oneoff.uploads, row, keeps=True)) if row.load.keeps else None
        figures = [[each.rate / 1e6, each.cpu * 1000, each.alone.p99, each.beside.p99] for each in found]
        rate, cpu, alone, beside = (median(column) for column in zip(*figures))
        if row.disturbed():
            marks.add(f"Other processes took more than {DISTURBED:.0%} of a core in some rounds: read with care.")
        lines.append(
            f"| {title} | {row.load.title} | {rate:,.0f} | {times(ratio) if ratio else ''} | {times(with_files) if with_files else ''} "
            f"| {cpu:.1f} | {alone:.2f} | {beside:.2f} |"
        )
    return "\n".join(lines + [""] + sorted(marks)).rstrip()


def _connections(run: Run) -> str:
    lines = [
        "Kept connections that have had an answer and are silent, and memory (PSS of all processes, without the kernel's) for each.",
        "",
        "| Server | bytes per connection |",
        "|---|---:|",
    ]
    return "\n".join(lines + [f"| {run.titles[name]} | {size:,.0f} |" for name, size in run.oneoff.connections.items()])


def _reloads(run: Run) -> str:
    lines = [
        f"{PER_SECOND} requests a second on one connection, milliseconds from when each was due; without reloads, and with one each"
        " second. Every answer is compared.",
        "",
        "| Server | reloads | p50 without | p99 without | worst without | p50 with | p99 with | worst with |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, found in run.oneoff.reloads.items():
        paces = (found.without, found.beside)
        cells = [f"{value:.2f}" for pace in paces for value in (pace.p50, pace.p99, pace.worst)]
        lines.append(f"| {run.titles[name]} | {found.count} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _memory(run: Run) -> str:
    lines = [
        "MiB. RSS counts shared pages in every process; PSS divides them. *Fresh*: after the first checks; *loaded*: after "
        "all loads.",
        "",
        "| Server | processes | largest RSS fresh | whole PSS fresh | largest RSS loaded | whole PSS loaded |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, fresh in run.oneoff.memory_fresh.items():
        cells = [f"{fresh.largest_rss / 1024:.1f}", f"{fresh.total_pss / 1024:.1f}", "–", "–"]
        if loaded := run.oneoff.memory_loaded.get(name):
            cells[2:] = [f"{loaded.largest_rss / 1024:.1f}", f"{loaded.total_pss / 1024:.1f}"]
        lines.append(f"| {run.titles[name]} | {fresh.processes} | {' | '.join(cells)} |")
    return "\n".join(lines)
