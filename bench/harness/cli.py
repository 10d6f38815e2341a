"""The command line, and a run from begin to end."""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from . import connections, machine, oneoff, plots, procfs, reloads, report, rounds, targets, uploads
from .check import check
from .errors import Unusable, WrongAnswer
from .load import Bench
from .oneoff import OneOff
from .peers import CONNECTIONS, IDLE_CONNECTIONS, PEERS, Peer, Site
from .rounds import Row
from .servers import Server
from .workloads import IDENTICAL, VARYING, WORKLOADS, Exchange, Workload, make_files

ROOT = Path(__file__).parents[2]
ONE_OFF = ("memory", "idle", "startup", "internals", "uploads", "connections", "reload")
#: those that need the running servers of both kinds
BOTH_KINDS = {"memory", "idle", "uploads", "connections", "reload"}
UPLOAD_ROUNDS = 3
#: seconds of a load without and with reloads, and --quick
RELOAD_SECONDS = (10, 3)
QUICK_CONNECTIONS = 1000
CHOICES = ("surus", "limit", "nginx-fpm", "mod_php")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options; argparse ends with status 2 for wrong ones."""
    names = [workload.name for workload in WORKLOADS] + list(ONE_OFF)
    parser = argparse.ArgumentParser(
        prog="bench/run",
        description="Measure Surus against nginx + php-fpm, Apache mod_php and bare hyper, in one run.",
        epilog="Exit status: 0 done, 1 a server answered wrongly or failed, 2 the run could not be made, "
        "3 a target was missed (only with --strict).",
    )
    parser.add_argument("--quick", action="store_true", help="2 rounds of 1 s, no warm-up: does it all work?")
    parser.add_argument("--rounds", type=_positive, metavar="N", help="default 5")
    parser.add_argument("--seconds", type=_positive, metavar="S", help="length of one load, default 4")
    parser.add_argument("--only", type=_list_of(names), metavar="NAME,...", help=", ".join(names))
    parser.add_argument("--peers", type=_list_of(CHOICES), metavar="NAME,...", help=", ".join(CHOICES))
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results", metavar="DIR", help="default bench/results")
    parser.add_argument("--surus", type=Path, metavar="FILE", help="default target/release/surus")
    parser.add_argument("--limit", type=Path, metavar="FILE", help="default target/release/surus-limit")
    parser.add_argument("--strict", action="store_true", help="a missed target is an error, too")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.seconds = options.seconds or (1 if options.quick else 4)
    options.only = options.only or names
    options.peers = options.peers or list(CHOICES)
    return options


def main(arguments: list[str]) -> int:
    """Run; returns the exit status."""
    options = parse(arguments)
    # So that servers are stopped and files removed when the run is ended from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(options, shlex.join(["bench/run", *arguments]))
    except Unusable as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def run(options: argparse.Namespace, command: str) -> int:
    """Measure and write the report."""
    server_core, generator_core = _cores()
    _needs("wrk", "apt install wrk")
    _needs("taskset", "apt install util-linux")
    _needs("setpriv", "apt install util-linux")
    workloads = [workload for workload in WORKLOADS if workload.name in options.only]
    wanted = {name for name in ONE_OFF if name in options.only}
    silent = QUICK_CONNECTIONS if options.quick else IDLE_CONNECTIONS
    if "connections" in wanted:
        connections.allow(silent)
    raw = options.out / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surus-bench-")))
        site = _site(options, scratch)
        peers = _taking_part(options.peers, workloads, wanted)
        servers = {peer.name: peer.server(site) for peer in peers}
        for server in servers.values():
            server.start(server_core)
            stack.callback(server.stop)
        found = OneOff()
        rows = [Row(workload, variant) for workload in workloads for variant in (IDENTICAL, VARYING)]
        if "memory" in wanted:
            _first_requests(peers, servers, found)
        rounds.measure(
            Bench(server_core, generator_core, raw, scratch),
            rows,
            lambda workload: [servers[peer.name] for peer in _order(peers, workload)],
            options.rounds,
            options.seconds,
            warm_up=not options.quick,
        )
        if "memory" in wanted and rows:
            found.memory_loaded = {name: procfs.memory(server.pids()) for name, server in servers.items()}
        cores = (server_core, generator_core)
        if "uploads" in wanted:
            found.uploads = _uploads(servers)
            uploads.measure(found.uploads, cores, min(options.rounds, UPLOAD_ROUNDS), options.seconds)
        if "connections" in wanted:
            _connections(servers, silent, found)
        if "reload" in wanted:
            _reloads(servers, site, generator_core, RELOAD_SECONDS[options.quick], found)
        if "surus" in options.peers:
            ours = [servers[peer.name] for peer in peers if peer.choice == "surus" or peer.name == "surus"]
            oneoff.collect(site, ROOT / "examples/hello", ours, wanted, found)
        titles = {peer.name: _title(peer, peers) for peer in peers}
        outcome = report.Run(
            machine=machine.describe(site, set(servers)),
            date=datetime.date.today().isoformat(),
            command=command,
            rounds=options.rounds,
            seconds=options.seconds,
            cores=cores,
            titles=titles,
            rows=rows,
            oneoff=found,
            verdicts=targets.verdicts(rows, found),
            plots=plots.write(options.out, rows, titles),
        )
    return _finish(options, outcome)


def _finish(options: argparse.Namespace, outcome: report.Run) -> int:
    text = report.markdown(outcome)
    (options.out / "latest.md").write_text(text, encoding="utf-8")
    print(text)
    if failures := outcome.failures():
        print("bench: FAILED", *failures, sep="\n  ", file=sys.stderr)
        return 1
    missed = [verdict for verdict in outcome.verdicts if verdict.passed is False]
    return 3 if options.strict and missed else 0


def _taking_part(choices: list[str], workloads: list[Workload], wanted: set[str]) -> list[Peer]:
    kinds = {workload.classic for workload in workloads}
    if wanted & BOTH_KINDS:
        kinds = {False, True}
    return [peer for peer in PEERS if (peer.choice or peer.name) in choices and kinds & set(peer.serves)]


def _order(peers: list[Peer], workload: Workload) -> list[Peer]:
    """Next to Surus: the limit where that is the yardstick; in classic mode the two peers, one on each side."""
    serving = [peer for peer in peers if workload.classic in peer.serves]
    return sorted(serving, key=lambda peer: peer.name != "limit") if workload.classic else serving


def _first_requests(peers: list[Peer], servers: dict[str, Server], found: OneOff) -> None:
    """Memory of each server after it has answered some requests."""
    for peer in peers:
        workload = next(workload for workload in WORKLOADS if workload.classic in peer.serves)
        server = servers[peer.name]
        try:
            check(server.port, workload.exchanges(IDENTICAL, server.host), 1, CONNECTIONS)
        except WrongAnswer as error:
            found.failures.append(f"{peer.title}, first requests: {error}\n{server.logs()}")
        found.memory_fresh[peer.name] = procfs.memory(server.pids())


def _uploads(servers: dict[str, Server]) -> list[uploads.Row]:
    """Raw bodies in coroutine mode, both kinds in classic mode, and to bare hyper, which forgets them or writes them to files."""
    sites = [("surus-classic", "/upload.php", True), ("nginx-fpm", "/upload.php", True), ("mod_php", "/upload.php", True)]
    loads = [
        uploads.Load(servers[name], "form" if form else "raw body", path, form, name == "limit", keeps)
        for form in (False, True)
        for name, path, keeps in [("limit", "/upload", False), ("limit", "/keep", True), ("surus", "/upload", False), *sites]
        if name in servers and not (form and name == "surus")
    ]
    return [uploads.Row(load) for load in loads]


def _connections(servers: dict[str, Server], count: int, found: OneOff) -> None:
    """Of those servers that do not need a process for each."""
    for name, workload in (("limit", "plaintext"), ("surus", "plaintext"), ("surus-classic", "small"), ("nginx-fpm", "small")):
        if name in servers:
            try:
                found.connections[name] = connections.idle(servers[name], _exchange(workload, servers[name]), count)
            except WrongAnswer as error:
                found.failures.append(f"{count} idle connections, {servers[name].title}: {error}")
            else:
                print(f"idle connections {name:13} {found.connections[name]:9,.0f} bytes each", file=sys.stderr, flush=True)
    found.connection_count = count


def _reloads(servers: dict[str, Server], site: Site, core: int, seconds: int, found: OneOff) -> None:
    for name, workload in (("surus", "json"), ("surus-classic", "classic")):
        if name in servers:
            exchange = _exchange(workload, servers[name])
            try:
                result = reloads.measure(servers[name], site.surus, exchange, core, seconds)
            except WrongAnswer as error:
                found.failures.append(f"reloads, {name}: {error}")
                continue
            found.reloads[name] = result
            what = f"p99 {result.without.p99:.2f} ms, with {result.count} reloads {result.beside.p99:.2f} ms"
            print(f"reload     {name:13} {what}", file=sys.stderr, flush=True)


def _exchange(name: str, server: Server) -> Exchange:
    workload = next(workload for workload in WORKLOADS if workload.name == name)
    return workload.exchanges(IDENTICAL, server.host)[0]


def _title(peer: Peer, peers: list[Peer]) -> str:
    """The modes of Surus are told apart only where both take part."""
    if peer.title == "Surus" and sum(other.title == "Surus" for other in peers) > 1:
        return "Surus, classic mode" if peer.serves == (True,) else "Surus"
    return peer.title


def _site(options: argparse.Namespace, scratch: Path) -> Site:
    # The servers drop root, so they must be able to walk to the pages: copies, in a folder open to all.
    scratch.chmod(0o755)
    shutil.copytree(ROOT / "bench/apps", scratch / "apps")
    make_files(scratch / "apps/classic")
    limit = options.limit or _built("surus-limit", "limit" in options.peers)
    surus = options.surus or _built("surus", "surus" in options.peers)
    return Site(scratch=scratch, apps=scratch / "apps", surus=surus.absolute(), limit=limit.absolute())


def _built(package: str, needed: bool) -> Path:
    """The release binary; built if it is missing."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release" / package
    if needed and not program.exists():
        argv = ["cargo", "build", "--release", "-p", package]
        print(f"bench: {package} is missing, building it: {shlex.join(argv)}", file=sys.stderr, flush=True)
        try:
            status = subprocess.run(argv, cwd=ROOT, check=False).returncode
        except OSError as error:
            raise Unusable(f"{package} is missing and cannot be built: {error}") from error
        if status != 0 or not program.exists():
            raise Unusable(f"{package} is missing and `{shlex.join(argv)}` failed")
    return program


def _cores() -> tuple[int, int]:
    """The first two cores that this process may use: for the server and for the load generator."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        raise Unusable("two cores are needed: one for the server, one for the load generator")
    return usable[0], usable[1]


def _needs(program: str, remedy: str) -> None:
    if shutil.which(program) is None:
        raise Unusable(f"{program} is missing: {remedy}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _list_of(names: Sequence[str]) -> Callable[[str], list[str]]:
    def parse_list(text: str) -> list[str]:
        given = [name.strip() for name in text.split(",") if name.strip()]
        if unknown := [name for name in given if name not in names]:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)} (known: {', '.join(names)})")
        return given

    return parse_list
