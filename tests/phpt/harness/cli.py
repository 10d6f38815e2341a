"""The command line: which tests, both runs, the comparison."""

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from . import snapshot, suite
from .changes import Changes
from .databases import databases
from .source import CACHE, ROOT, say, source

FOLDERS = [
    "Zend/tests", "tests", "ext/standard", "ext/spl", "ext/session", "ext/pcre", "ext/date", "ext/json", "ext/mbstring",
    "ext/dom", "ext/pdo", "ext/pdo_mysql", "ext/pdo_pgsql", "ext/pdo_sqlite", "ext/mysqli", "ext/pgsql", "ext/curl",
    "ext/sockets",
]
HERE = Path(__file__).resolve().parents[1]
EXPECTED = HERE / "expected-differences.txt"
SUBSET = HERE / "subset.txt"
# More tests than this at a time are run in several batches, each compared and printed before the next.
BATCH = 1500


def _tests(folder):
    root = source()
    place = root / folder
    if place.is_file():
        return [folder]
    if folder.startswith("ext/") and folder.count("/") == 1:
        place = place / "tests"
    found = sorted(str(file.relative_to(root)) for file in place.rglob("*.phpt"))
    common = f"{folder}/tests/common.phpt"
    if common in found:
        found.remove(common)
        found += [f"{test}{suite.DRIVER}{folder.removeprefix('ext/')}" for test in _tests("ext/pdo")]
    return found


def _lines(file):
    lines = (line.split("#", 1)[0].strip() for line in file.read_text().splitlines())
    return [line for line in lines if line]


def _expected():
    """Reasons by test: lines of `path: reason`."""
    pairs = (line.partition(":") for line in _lines(EXPECTED))
    return {path.strip(): reason.strip() for path, _, reason in pairs}


class StockResults:
    """The stock program's results, kept for as long as it is the same program."""

    def __init__(self, jobs, opcache, servers):
        version = subprocess.run([suite.STOCK, "-v"], capture_output=True, text=True, check=True).stdout.split()[1]
        # Results without servers are older: there, most tests of databases were skipped.
        name = f"stock-{version}-servers{'-opcache' if opcache else ''}.json"
        self._file = CACHE / name
        self._jobs = jobs
        self._opcache = opcache
        self._servers = servers
        self._known = json.loads(self._file.read_text()) if self._file.exists() else {}

    def of(self, tests):
        new = [test for test in tests if test not in self._known]
        if new:
            self.again(new, self._jobs)
        return {test: self._known.get(test, "LOST") for test in tests}

    def again(self, tests, jobs=1):
        found = suite.run(suite.STOCK, "stock", tests, jobs, self._opcache, self._servers)
        found = {test: found.get(test, "LOST") for test in tests}
        with (CACHE / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another run may have found more in the meantime
            self._known = (json.loads(self._file.read_text()) if self._file.exists() else {}) | found
            self._file.write_text(json.dumps(self._known, indent=0, sort_keys=True))
        return found


def _compare(binary, stock, tests, options, more):
    """Results of both; what differs is run again alone, twice at most, since a busy machine upsets some tests."""
    theirs = stock.of(tests)
    found = suite.run(binary, "surus", tests, options.jobs, options.opcache, more)
    ours = {test: found.get(test, "LOST") for test in tests}
    for _ in range(options.retries):
        differ = [test for test in tests if ours[test] != theirs[test]]
        if not differ:
            break
        say(f"running {len(differ)} again that differ")
        theirs.update(stock.again(differ))
        found = suite.run(binary, "surus", differ, 1, options.opcache, more)
        ours.update({test: found.get(test, "LOST") for test in differ})
    return theirs, ours


def _arguments(words):
    parser = argparse.ArgumentParser(prog="tests/phpt/run", description=__doc__)
    parser.add_argument("--only", help="folders or .phpt files, separated by commas")
    parser.add_argument("--subset", action="store_true", help="the files of subset.txt")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2, help="tests at a time")
    parser.add_argument("--retries", type=int, default=2, help="how often to run again what differs")
    parser.add_argument("--opcache", action="store_true", help="switch OPcache on, in both")
    parser.add_argument("--binary", type=Path, help="stands in for php-cli; else it is built")
    parser.add_argument("--changes", action="store_true", help="also look for state that changes and nobody explains")
    parser.add_argument("--snapshot", action="store_true", help="as requests in snapshot mode: what do they leave?")
    parser.add_argument("--diff", action="store_true", help="print what differs in the output")
    return parser.parse_args(words)


def main(words):
    options = _arguments(words)
    # Ends what it has started, too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if not options.binary:
        program = "surus" if options.snapshot else "surus-phpt"
        options.binary = ROOT / "target/release" / program
        subprocess.run(["cargo", "build", "--release", "-p", program], cwd=ROOT, check=True)
    if options.subset:
        groups = {"subset": _lines(SUBSET)}
    else:
        folders = options.only.split(",") if options.only else FOLDERS
        groups = {folder: _tests(folder.rstrip("/")) for folder in folders}
    with databases([test for tests in groups.values() for test in tests]) as servers:
        if options.snapshot:
            return snapshot.run(options.binary.resolve(), groups, servers)
        if not options.changes:
            return _run(groups, options, servers, servers)
        with Changes() as changes:
            status = _run(groups, options, servers, servers | changes.environment)
            if not options.subset:
                changes.sweep(options.binary.resolve(), suite.environment(options.binary.resolve(), {}))
            return 0 if changes.are_explained(sys.stdout) and status == 0 else 1


def _run(groups, options, servers, more):
    """Runs and compares group after group, with `more` in the environment of the ones in isolates. Returns the exit code."""
    stock = StockResults(options.jobs, options.opcache, servers)
    expected = _expected()
    differences = {}
    total = Counter()
    for name, tests in groups.items():
        counts = Counter()
        for start in range(0, len(tests), BATCH):
            batch = tests[start : start + BATCH]
            theirs, ours = _compare(options.binary.resolve(), stock, batch, options, more)
            counts.update(tests=len(batch))
            counts.update(f"stock {result}" for result in theirs.values())
            counts.update(f"surus {result}" for result in ours.values())
            for test in batch:
                if theirs[test] != ours[test]:
                    differences[test] = (theirs[test], ours[test])
                    reason = expected.get(test, "NOT EXPECTED")
                    print(f"{test}: {theirs[test]} -> {ours[test]} ({reason})", flush=True)
                    if options.diff:
                        print(suite.difference("surus", test), flush=True)
        _summary(name, counts)
        total.update(counts)
    if len(groups) > 1:
        _summary("all", total)
    unexpected = [test for test in differences if test not in expected]
    ran = {test for tests in groups.values() for test in tests}
    gone = [test for test in expected if test in ran and test not in differences]
    if gone:
        print(f"no longer different: {', '.join(gone)}")
    print(f"phpt: {len(ran)} tests, {len(differences)} differ, {len(unexpected)} of them unexpectedly")
    return 1 if unexpected else 0


def _summary(name, counts):
    def side(of):
        kinds = ("PASSED", "FAILED", "SKIPPED", "XFAILED", "BORKED", "WARNED", "LOST")
        return ", ".join(f"{counts[f'{of} {k}']} {k.lower()}" for k in kinds if counts[f"{of} {k}"])

    print(f"{name}: {counts['tests']} tests; stock: {side('stock')}; surus: {side('surus')}", flush=True)
