"""What changes in the variables of PHP and of libraries while tests run, though no switch of isolates swaps it."""

import bisect
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
EXPLAINED = HERE / "explained.txt"
SWEEP = HERE / "sweep.php"
# More than there are; how many a process calls, and for how many seconds.
FUNCTIONS = 2600
AT_A_TIME = 40
TIMEOUT = 60
VARIABLE = "SURUS_PHPT_CHANGES"
THREAD = "(thread)"
BEGIN = "(begin)"
# How many tests are named for a change.
EXAMPLES = 3
# Bytes between changes of one variable that happen not to have changed, or between variables.
GAP = 8


class Symbols:
    """The variables that an object exports."""

    def __init__(self, path):
        listed = subprocess.run(["nm", "-D", "-S", "--defined-only", path], capture_output=True, text=True).stdout
        found = {}
        for line in listed.splitlines():
            words = line.split()
            if len(words) == 4 and words[2] in "BbDdGgSsVv":
                name = words[3].split("@")[0]
                found.setdefault(int(words[0], 16), (name, int(words[1], 16)))
        self._starts = sorted(found)
        self._found = found

    def place(self, address):
        """The last symbol at or before the address, and the distance from it."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return BEGIN, address
        start = self._starts[at]
        return self._found[start][0], address - start


class Explained:
    """explained.txt: `object: symbol: from-until: reason`, bytes behind the symbol; `*` for all of a symbol or object."""

    def __init__(self, text):
        self._rows = defaultdict(list)
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split(": ", 3)]
            if len(parts) != 4 or not parts[3]:
                raise ValueError(f"explained.txt, line {number}: not `object: symbol: from-until: reason`")
            name, symbol, place, _ = parts
            start, until = (0, 1 << 62) if place == "*" else (int(number) for number in place.split("-"))
            self._rows[name].append((symbol, start, until))

    def has(self, name, symbol, start, until):
        """Rows may lie side by side, with nothing but padding between them."""
        rows = sorted((low, high) for known, low, high in self._rows.get(name, []) if known in ("*", symbol))
        for low, high in rows:
            if low <= start + GAP:
                start = max(start, high)
        return until <= start


def base_name(path):
    """libfoo.so.1.2.3 as libfoo.so: versions come and go."""
    name = Path(path).name
    return name[: name.index(".so") + 3] if ".so" in name else name


def merged(places):
    """Places that overlap or lie side by side as one."""
    found = {}
    last = None
    for (start, until), who in sorted(places.items()):
        if last and start <= last[1] + GAP:
            names = found.pop(last) | who
            last = (last[0], max(last[1], until))
            found[last] = names
        else:
            last = (start, until)
            found[last] = set(who)
    return found


class Changes:
    """Collects what the tests' processes write."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="surus-phpt-changes-")
        self._file = Path(self._folder.name) / "changes"
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    @property
    def environment(self):
        return {VARIABLE: str(self._file)}

    def sweep(self, binary, environment):
        """Calls functions one by one, which tests do in few ways. How each process ends says nothing: some are fatal."""
        with tempfile.TemporaryDirectory(prefix="surus-phpt-sweep-") as folder:
            for first in range(0, FUNCTIONS, AT_A_TIME):
                command = [binary, "-d", "memory_limit=512M", SWEEP, str(first), str(AT_A_TIME)]
                try:
                    subprocess.run(
                        command, cwd=folder, env=environment | self.environment, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    )
                except subprocess.TimeoutExpired:
                    print(f"phpt: of the functions from {first} on one does not return", flush=True)

    def found(self):
        """Tests by (object, symbol, from, until)."""
        symbols = {}
        found = defaultdict(dict)
        lines = self._file.read_text(errors="replace").splitlines() if self._file.exists() else []
        for line in lines:
            path, address, length, who = line.split("\t", 3)
            if address.startswith("+"):
                symbol, start = THREAD, int(address)
            else:
                if path not in symbols:
                    symbols[path] = Symbols(path)
                symbol, start = symbols[path].place(int(address))
            found[base_name(path), symbol].setdefault((start, start + int(length)), set()).add(Path(who).name)
        return {(*variable, *place): who for variable, places in found.items() for place, who in merged(places).items()}

    def are_explained(self, output):
        """Says what is not."""
        explained = Explained(EXPLAINED.read_text())
        found = self.found()
        if not found:
            print("phpt: nothing was watched", file=output)
            return False
        unknown = [(place, who) for place, who in sorted(found.items()) if not explained.has(*place)]
        for (name, symbol, start, until), who in unknown:
            examples = ", ".join(sorted(who)[:EXAMPLES])
            print(f"not explained: {name}: {symbol}: {start}-{until} ({len(who)} tests: {examples})", file=output)
        print(f"phpt: {len(found)} changes, {len(unknown)} of them not explained", file=output, flush=True)
        return not unknown
