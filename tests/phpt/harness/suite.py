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
EXTENSIONS = "/etc/php/8.2/cli/conf.d"


def _environment(php):
    """No php.ini, the extensions of php-cli, and nothing of the caller's that a test would see."""
    ini = CACHE / "ini"
    ini.mkdir(parents=True, exist_ok=True)
    (ini / "php.ini").write_text("")
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "USER", "LANG") if name in os.environ}
    kept.update({name: value for name, value in os.environ.items() if name.startswith(("MYSQL_TEST", "PDO_"))})
    return kept | {
        "PHPRC": str(ini),
        "PHP_INI_SCAN_DIR": EXTENSIONS,
        "TEST_PHP_EXECUTABLE": str(php),
        "NO_INTERACTION": "1",
        "SKIP_ONLINE_TESTS": "1",
        "SKIP_SLOW_TESTS": "1",
        "TEST_TIMEOUT": str(TIMEOUT),
    }


def run(php, where, tests, jobs, opcache=False):
    """Results by test (path below the tree) of the tests, which are paths below the tree too."""
    if not tests:
        return {}
    root = tree(where)
    with tempfile.TemporaryDirectory(prefix="surus-phpt-") as scratch:
        results = Path(scratch) / "results"
        listed = Path(scratch) / "list"
        listed.write_text("".join(f"{root / test}\n" for test in tests))
        command = [STOCK, "-d", "memory_limit=512M", str(root / "run-tests.php"), "-p", str(php), "-q", "-g", "none"]
        command += ["--no-progress", "--set-timeout", str(TIMEOUT), "-W", str(results), "-r", str(listed)]
        command += ["-d", f"opcache.enable_cli={int(opcache)}"]
        if jobs > 1:
            command.append(f"-j{jobs}")
        log = CACHE / f"{where}-{os.getpid()}.log"
        with log.open("wb") as output:
            # A session of its own: what tests leave behind is ended with it.
            process = subprocess.Popen(
                command, cwd=root, env=_environment(php), stdin=subprocess.DEVNULL, stdout=output,
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
                result, _, test = line.partition("\t")
                found[test.removeprefix(f"{root}/")] = result
    lost = [test for test in tests if test not in found]
    if lost and len(lost) == len(tests):
        say(f"run-tests.php has not run; its output: {log}")
        raise SystemExit(2)
    log.unlink()
    return found


def difference(where, test):
    """What the test's output differed in, as run-tests.php left it."""
    file = (tree(where) / test).with_suffix(".diff")
    return file.read_text(errors="replace") if file.exists() else ""
