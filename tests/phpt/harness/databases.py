"""A PostgreSQL and a MariaDB server for the tests of their extensions: temporary folders, free ports, ended with the run."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

# Seconds that a server may take to start.
PATIENCE = 60


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def as_user(name):
    """What makes a command run as `name`, and end when this process does. Nobody but root can become somebody else."""
    words = ["setpriv", "--pdeathsig", "KILL"]
    if os.geteuid() == 0:
        words += ["--reuid", name, "--regid", str(pwd.getpwnam(name).pw_gid), "--clear-groups"]
    return words


@contextmanager
def _folder(user):
    path = Path(tempfile.mkdtemp(prefix=f"surus-phpt-{user}-"))
    if os.geteuid() == 0:
        owner = pwd.getpwnam(user)
        os.chown(path, owner.pw_uid, owner.pw_gid)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _running(command, folder, ready):
    """A server that runs until the block is left; `ready` is what it writes when it can be used."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + PATIENCE
        while ready not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"phpt: {command[-1]} does not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _postgres():
    """Yields the variables by which the tests of pgsql and pdo_pgsql find it."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        raise SystemExit("phpt: PostgreSQL is not installed")
    with _folder("postgres") as folder:
        data, port = folder / "data", _free_port()
        user = as_user("postgres")
        subprocess.run(
            [*user, programs[-1] / "initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8",
             "--locale=C", "-D", data],
            cwd=folder, check=True, stdout=subprocess.DEVNULL,
        )
        server = [*user, programs[-1] / "postgres", "-D", data]
        for setting in (f"port={port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "fsync=off"):
            server += ["-c", setting]
        with _running(server, folder, "ready to accept connections"):
            client = [programs[-1] / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "test"]
            subprocess.run(client, check=True)
            where = f"host=127.0.0.1 port={port} dbname=test user=postgres password=postgres"
            yield {"PGSQL_TEST_CONNSTR": where, "PDO_PGSQL_TEST_DSN": f"pgsql:{where}"}


@contextmanager
def _mariadb():
    """Yields the variables by which the tests of mysqli and pdo_mysql find it."""
    if not Path("/usr/sbin/mariadbd").exists():
        raise SystemExit("phpt: MariaDB is not installed")
    with _folder("mysql") as folder:
        data, port, address = folder / "data", _free_port(), folder / "socket"
        user = as_user("mysql")
        subprocess.run(
            [*user, "mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal",
             "--skip-test-db", f"--datadir={data}"],
            cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        start = folder / "start.sql"
        start.write_text("CREATE DATABASE test;\n")
        server = [
            *user, "/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={address}",
            f"--pid-file={folder / 'pid'}", f"--init-file={start}", f"--port={port}", "--bind-address=127.0.0.1",
            "--skip-name-resolve", "--local-infile=1", "--innodb-flush-log-at-trx-commit=0",
            "--character-set-server=utf8mb4", "--max-connections=200",
        ]
        with _running(server, folder, "ready for connections"):
            dsn = f"mysql:host=127.0.0.1;port={port};dbname=test"
            yield {
                "MYSQL_TEST_HOST": "127.0.0.1", "MYSQL_TEST_PORT": str(port), "MYSQL_TEST_SOCKET": str(address),
                "PDO_MYSQL_TEST_DSN": dsn, "PDO_MYSQL_TEST_USER": "root", "PDO_MYSQL_TEST_PASS": "",
                "PDO_MYSQL_TEST_HOST": "127.0.0.1", "PDO_MYSQL_TEST_PORT": str(port),
            }


@contextmanager
def databases(tests):
    """Environment variables for `tests`; servers run only if one of them could use one."""
    with ExitStack() as servers:
        found = {}
        if any("pgsql" in test for test in tests):
            found |= servers.enter_context(_postgres())
        if any("mysql" in test for test in tests):
            found |= servers.enter_context(_mariadb())
        yield found
