"""Servers that the measurements of the guard need, each with its files in a folder."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def start(command: list[str], log: Path) -> subprocess.Popen:
    with log.open("ab") as out:
        return subprocess.Popen(command, stdout=out, stderr=out)


def postgres(folder: Path) -> subprocess.Popen | None:
    """On a socket in the folder, if PostgreSQL is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        return None
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    data = folder / "data"
    subprocess.run([*user, str(found[-1] / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust"], check=True, capture_output=True)
    command = [*user, str(found[-1] / "postgres"), "-D", str(data), "-k", str(folder), "-h", ""]
    server = start(command, folder / "log")
    wait_for(lambda: any(folder.glob(".s.PGSQL.*")) and "ready to accept" in (folder / "log").read_text())
    return server


def redis(folder: Path) -> subprocess.Popen | None:
    if not shutil.which("redis-server"):
        return None
    server = start(["redis-server", "--port", "0", "--unixsocket", str(folder / "redis"), "--save", ""], folder / "log")
    wait_for((folder / "redis").exists)
    return server


def wait_for(done) -> None:
    for _ in range(600):
        if done():
            return
        time.sleep(0.1)
    sys.exit("a server does not start")


def surus(binary: Path, mode: str, port: int, folder: Path, below: list[str] = []) -> subprocess.Popen:
    """`below`: the command that runs it."""
    site = HERE / ("app.php" if mode == "coroutine" else "classic")
    limits = ["--set", "php.max_execution_time=0", "--set", "request_timeout=0"]
    command = [*below, str(binary), "serve", str(site), "--listen", f"127.0.0.1:{port}", "--workers", "1", "--mode", mode, *limits]
    server = start(command, folder / "log")
    wait_for(lambda: f"127.0.0.1:{port} " in (folder / "log").read_text())
    return server
