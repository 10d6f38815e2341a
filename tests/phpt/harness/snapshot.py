"""PHP's tests as requests to a server in snapshot mode: after each, all that PHP code can see is what the boot has left."""

import http.client
import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from . import suite
from .databases import as_user
from .source import ROOT, tree

FIXTURE = ROOT / "tests" / "fixtures" / "snapshot"
EXPLAINED = Path(__file__).resolve().parents[1] / "snapshot-differences.txt"
# Seconds that a request may take.
TIMEOUT = 20
# Of a test these are no matter of the script alone: it would do something else here, or wait for input.
OTHERWISE = {"CGI", "STDIN", "PHPDBG", "ARGS", "REDIRECTTEST"}
# Settings that keep a test from doing what it tries, and that no request can make.
FORBIDS = (b"open_basedir", b"disable_functions", b"disable_classes")
# Tests try to change what is none of theirs: the server is nobody's.
NOBODY = "nobody"
PROBE = "index.php"
REPLACED = "the isolate was replaced"


def _sections(file):
    """The sections of a .phpt by name, as run-tests.php reads them."""
    found, name = {}, None
    for line in file.read_bytes().splitlines(keepends=True):
        start = re.match(rb"^--([_A-Z]+)--\r?\n?$", line)
        if start:
            name = start[1].decode()
            found[name] = b""
        elif name:
            found[name] += line
    return found


def _script(file, sections):
    if "FILE_EXTERNAL" in sections:
        return (file.parent / sections["FILE_EXTERNAL"].decode().strip()).read_bytes()
    if "FILEEOF" in sections:
        return re.sub(rb"[\r\n]+$", b"", sections["FILEEOF"])
    return sections.get("FILE")


@contextmanager
def _tests_of_nobody():
    """A copy of the tests that the server may write to."""
    with tempfile.TemporaryDirectory(prefix="surus-phpt-") as folder:
        shutil.copytree(tree("stock"), folder, symlinks=True, dirs_exist_ok=True)
        if os.geteuid() == 0:
            owner = pwd.getpwnam(NOBODY)
            subprocess.run(["chown", "-R", f"{owner.pw_uid}:{owner.pw_gid}", folder], check=True)
        yield Path(folder)


class Server:
    """One worker with one isolate, whose root is the tree of tests."""

    def __init__(self, binary, root, more):
        self._binary = binary
        self._root = root
        self._more = more
        self._process = None
        self._connection = None
        self._log = None

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="surus-phpt-")
        for file in ("probe.php", "app.php"):
            shutil.copy(FIXTURE / file, self._folder.name)
        os.chmod(self._folder.name, 0o777)
        (self._root / PROBE).write_text(
            f"<?php if (isset($_GET['log'])) {{ error_log('first'); }} echo json_encode(require '{self._folder.name}/probe.php', JSON_PARTIAL_OUTPUT_ON_ERROR);"
        )
        # OPcache has no scripts that have just been written, and what it has takes less memory.
        for file in (self._root / PROBE, *Path(self._folder.name).iterdir()):
            os.utime(file, (1e9, 1e9))
        self._start()
        return self

    def __exit__(self, *_):
        self._end()
        self._folder.cleanup()
        (self._root / PROBE).unlink(missing_ok=True)

    def _start(self):
        self._log = Path(self._folder.name) / "log"
        address = Path(self._folder.name) / "control"
        command = [*as_user(NOBODY), self._binary, "serve", self._root, "--listen", "127.0.0.1:0", "--mode", "snapshot", "--workers", "1"]
        for setting in (
            f"app.boot={self._folder.name}/app.php", "isolates.min=1", "isolates.max=1", f"request_timeout={TIMEOUT}s",
            "cancel_on_disconnect=true", f"control={address}", "clear_env=false",
        ):
            command += ["--set", setting]
        environment = suite.environment(self._binary, self._more) | {"SNAPSHOT_FOLDER": self._folder.name}
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=self._root, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._address = None
        while not self._address:
            if self._process.poll() is not None:
                raise SystemExit(f"phpt: the server does not start:\n{self.log()}")
            ready = re.findall(r"http://127\.0\.0\.1:(\d+)", self.log())
            self._address = int(ready[-1]) if ready else None

    def _end(self):
        if self._process:
            self._process.kill()
            self._process.wait()
            subprocess.run(["pkill", "-KILL", "-s", str(self._process.pid)], check=False)
        self._process = None

    def logged(self):
        """How long the log is."""
        return self._log.stat().st_size

    def log(self, start=0):
        """What was logged from there on; not all of what repeats itself very often."""
        with self._log.open("rb") as log:
            log.seek(max(start, self.logged() - (1 << 20)))
            return log.read().decode(errors="replace")

    def get(self, path):
        """Status and body; status 0 if there was none."""
        for _ in range(2):
            if self._connection is None:
                self._connection = http.client.HTTPConnection("127.0.0.1", self._address, timeout=2 * TIMEOUT)
            try:
                self._connection.request("GET", path)
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException, ValueError):
                self._connection.close()
                self._connection = None
        return 0, b""

    def probe(self):
        for _ in range(50):
            status, body = self.get(f"/{PROBE}")
            if status == 200:
                try:
                    return json.loads(body)
                except ValueError:
                    return {"output": body.decode(errors="replace")}
        return {"status": status}


def _differences(path, first, second):
    """The paths at which two values differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in first.keys() | second.keys():
            if key not in first:
                yield f"{path}/{key} is new"
            else:
                yield from _differences(f"{path}/{key}", first[key], second.get(key))
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (one, other) in enumerate(zip(first, second)):
            yield from _differences(f"{path}/{number}", one, other)
    elif isinstance(first, list) and isinstance(second, list) and all(isinstance(one, str) for one in first + second):
        counts = Counter(second)
        counts.subtract(first)
        yield f"{path}: " + ", ".join(f"{number:+} {what}" for what, number in counts.items() if number)
    elif first != second:
        yield f"{path}: {str(second)[:200]} for {str(first)[:200]}"


@contextmanager
def _cleaned(file, sections, env):
    try:
        yield
    finally:
        if "CLEAN" in sections:
            script = file.with_suffix(".clean.php")
            script.write_bytes(sections["CLEAN"])
            command = [*as_user(NOBODY), suite.STOCK, script]
            subprocess.run(command, cwd=file.parent, env=env, timeout=60, capture_output=True, check=False)
            script.unlink()


def _one(server, root, test, env, before):
    """What has become of a test: how it ended, and what is left of it."""
    file = root / test
    sections = _sections(file)
    script = _script(file, sections)
    if script is None or OTHERWISE & sections.keys() or any(name in sections.get("INI", b"") for name in FORBIDS):
        return "left out", []
    path = file.with_suffix(".php")
    seen = server.logged()
    with _cleaned(file, sections, env):
        path.write_bytes(script)
        status, output = server.get("/" + quote(str(path.relative_to(root))))
        after = server.probe()
        path.unlink(missing_ok=True)
    log = server.log(seen)
    found = list(_differences("", before, after))
    for line in log.splitlines():
        if "cannot be put back" in line or "worker 1 " in line or "killed by" in line or "died" in line:
            found.append(line)
    if any("/classes/Boot/0/id" in difference for difference in found):
        # Another isolate, which differs in what is its own: nothing of a request.
        found = [REPLACED] + [line for line in found if not line.startswith("/")]
    if status == 200 and output.strip() == sections.get("EXPECT", b"?").strip():
        return "as expected", found
    # Many print what is only of php-cli, or have a pattern in place of a text.
    return {200: "otherwise", 0: "cut"}.get(status, f"answered {status}"), found


def _explained():
    lines = (line.split("#", 1)[0].strip() for line in EXPLAINED.read_text().splitlines())
    pairs = (line.partition(":") for line in lines if line)
    return {test.strip(): reason.strip() for test, _, reason in pairs}


def _first(server):
    """Once OPcache has all scripts, and the server has opened its log."""
    server.get("/?log")
    server.probe()
    return server.probe()


def run(binary, groups, more):
    """Runs all tests of `groups`, prints what they leave, and returns the exit code."""
    explained = _explained()
    env = suite.environment(suite.STOCK, more)
    total, unexpected = Counter(), 0
    with _tests_of_nobody() as root, Server(binary, root, more) as server:
        before = _first(server)
        for name, tests in groups.items():
            counts = Counter()
            for test in tests:
                if suite.DRIVER in test:
                    continue
                ended, found = _one(server, root, test, env, before)
                counts[ended] += 1
                if found:
                    counts["left something"] += 1
                    reason = explained.get(test)
                    unexpected += reason is None
                    print(f"{test}: {ended}; {'; '.join(found[:6])} ({reason or 'NOT EXPECTED'})", flush=True)
                    # A new isolate has an id of its own.
                    before = _first(server)
            print(f"{name}: {', '.join(f'{number} {what}' for what, number in counts.most_common())}", flush=True)
            total.update(counts)
    print(f"phpt on snapshots: {sum(total.values()) - total['left something']} tests, {total['left something']} left something, "
          f"{unexpected} of them unexpectedly")
    return 1 if unexpected else 0
