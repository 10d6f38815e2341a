"""Runs tests with PHP's own run-tests.php."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from .source import CACHE, say, tree

STOCK = "/usr/bin/php8.2"
# Seconds that one test may take.
TIMEOUT = 60
EXTENSIONS = str(Path(__file__).resolve().parents[2] / "php.d")


# Marks a test of PDO that runs with a driver: `ext/pdo/tests/pdo_001.phpt@pdo_mysql`. run-tests.php finds these by a
# test of the driver's that stands for all of them.
DRIVER = "@"


def environment(php, more):
    """No php.ini, the extensions of tests, what is to be added, and nothing of the caller's that a test would see."""
    ini = CACHE / "ini"
    ini.mkdir(parents=True, exist_ok=True)
    (ini / "php.ini").write_text("")
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "USER", "LANG") if name in os.environ}
    return kept | more | {
        "PHPRC": str(ini),
        "PHP_INI_SCAN_DIR": EXTENSIONS,
        "TEST_PHP_EXECUTABLE": str(php),
        "NO_INTERACTION": "1",
        "SKIP_ONLINE_TESTS": "1",
        "SKIP_SLOW_TESTS": "1",
        "TEST_TIMEOUT": str(TIMEOUT),
    }


def run(php, where, tests, jobs, opcache=False, more=None):
    """Results by test of the tests, which are paths below the tree, perhaps with a driver. `more` is their environment."""
    # run-tests.php takes the ones with a driver only one at a time.
    plain = [test for test in tests if DRIVER not in test]
    driven = [test for test in tests if DRIVER in test]
    found = _run(php, where, plain, jobs, opcache, more or {})
    return found | _run(php, where, driven, 1, opcache, more or {})


def _run(php, where, tests, jobs, opcache, more):
    if not tests:
        return {}
    root = tree(where)
    names = {_name(root, test): test for test in tests}
    with tempfile.TemporaryDirectory(prefix="surus-phpt-") as scratch:
        results = Path(scratch) / "results"
        listed = Path(scratch) / "list"
        listed.write_text("".join(f"{_line(root, test)}\n" for test in tests))
        command = [STOCK, "-d", "memory_limit=512M", str(root / "run-tests.php"), "-p", str(php), "-q", "-g", "none"]
        command += ["--no-progress", "--set-timeout", str(TIMEOUT), "-W", str(results), "-r", str(listed)]
        command += ["-d", f"opcache.enable_cli={int(opcache)}"]
        if jobs > 1:
            command.append(f"-j{jobs}")
        log = CACHE / f"{where}-{os.getpid()}.log"
        with log.open("wb") as output:
            # A session of its own: what tests leave behind is ended with it.
            process = subprocess.Popen(
                command, cwd=root, env=environment(php, more), stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )
            try:
                process.wait()
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        found = {}
        if results.exists():
            for line in results.read_text(errors="replace").splitlines():
                result, _, name = line.partition("\t")
                found[names.get(name, name)] = result
    if not any(test in found for test in tests):
        say(f"run-tests.php has not run; its output: {log}")
        raise SystemExit(2)
    log.unlink()
    return found


def _driver(root, test):
    """The test that stands for all tests of PDO with this driver, and the path of this one."""
    path, _, driver = test.partition(DRIVER)
    return root / "ext" / driver / "tests" / "common.phpt", root / path


def _line(root, test):
    """The test in a list for run-tests.php."""
    if DRIVER not in test:
        return str(root / test)
    common, path = _driver(root, test)
    return f"# [{common}]: {path}"


def _name(root, test):
    """The test in a list of results."""
    if DRIVER not in test:
        return str(root / test)
    common, path = _driver(root, test)
    return f"# {common.read_text().splitlines()[1].strip()}: {path}"


def difference(where, test):
    """What the test's output differed in, as run-tests.php left it."""
    root = tree(where)
    if DRIVER in test:
        # The output is the driver's: run-tests.php puts it beside the test that stands for all.
        common, path = _driver(root, test)
        file = common.parent / f"{path.stem}.diff"
    else:
        file = (root / test).with_suffix(".diff")
    return file.read_text(errors="replace") if file.exists() else ""
