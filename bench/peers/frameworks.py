"""The peers: how they are installed, and started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import peers as harness
from harness.errors import Unusable
from harness.servers import Command, Server, free_port

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "target" / "bench-peers"


@dataclass(frozen=True)
class Framework:
    """One process each, on one core; php-fpm has as many as connections."""

    name: str
    title: str
    prepare: Callable[[], None]
    #: from the number of routes, a port and a folder for its own files
    commands: Callable[[int, int, Path], list[Command]]
    processes: int = 1

    def server(self, routes: int, scratch: Path) -> Server:
        """Configured, not started."""
        port = free_port()
        return Server(self.name, self.title, port, self.commands(routes, port, scratch), scratch, self.processes)


def _nothing() -> None:
    pass


def _environment(routes: int, port: int) -> dict[str, str]:
    return {"PORT": str(port), "ROUTES": str(routes), "NODE_ENV": "production", "PYTHONDONTWRITEBYTECODE": "1"}


def _surus(routes: int, port: int, scratch: Path) -> list[Command]:
    surus = os.environ.get("SURUS_BIN", str(ROOT / "target" / "release" / "surus"))
    argv = [surus, "serve", str(HERE / "surus" / "app.php"), "--listen", f"127.0.0.1:{port}", "--workers", "1"]
    argv += ["--set", "env.ROUTES=$ROUTES"]
    return [Command(argv, _environment(routes, port), ready_line="^surus ready")]


def _build_axum() -> None:
    argv = ["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", str(HERE / "axum" / "Cargo.toml")]
    subprocess.run([*argv, "--target-dir", str(WORK / "axum")], check=True)


def _axum(routes: int, port: int, scratch: Path) -> list[Command]:
    return [Command([str(WORK / "axum" / "release" / "surus-bench-axum")], _environment(routes, port))]


def _copy(name: str, files: tuple[str, ...]) -> bool:
    """Brings the files of a peer to where it is installed; whether what it needs has changed."""
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    changed = False
    for file in files:
        text = (HERE / name / file).read_bytes()
        target = folder / file
        if not target.exists() or target.read_bytes() != text:
            changed |= file == files[0]
            target.write_bytes(text)
    return changed


def _node(name: str) -> Callable[[], None]:
    def prepare() -> None:
        version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
        if int(version.strip().lstrip("v").split(".")[0] or 0) < 20:
            raise Unusable(f"Node.js 20 or newer is missing, found {version.strip() or 'none'}")
        if _copy(name, ("package.json", "server.js")) or not (WORK / name / "node_modules").exists():
            argv = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel", "error"]
            subprocess.run(argv, cwd=WORK / name, check=True)

    return prepare


def _node_server(name: str) -> Callable[[int, int, Path], list[Command]]:
    def commands(routes: int, port: int, scratch: Path) -> list[Command]:
        return [Command(["node", str(WORK / name / "server.js")], _environment(routes, port))]

    return commands


def _install_fastapi() -> None:
    folder = WORK / "fastapi"
    if _copy("fastapi", ("requirements.txt", "main.py")) or not (folder / "bin" / "uvicorn").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        argv = [str(folder / "bin" / "pip"), "-q", "--disable-pip-version-check", "install", "-r", str(folder / "requirements.txt")]
        subprocess.run(argv, check=True)


def _fastapi(routes: int, port: int, scratch: Path) -> list[Command]:
    argv = [str(WORK / "fastapi" / "bin" / "uvicorn"), "--app-dir", str(WORK / "fastapi"), "main:app"]
    argv += ["--port", str(port), "--no-access-log", "--log-level", "warning"]
    return [Command(argv, _environment(routes, port))]


def _slim(routes: int, port: int, scratch: Path) -> list[Command]:
    """nginx and php-fpm as in the benchmark's other part, with the application behind every path."""
    sessions = scratch / "sessions"
    sessions.mkdir(exist_ok=True)
    sessions.chmod(0o777)
    more = f"env[ROUTES] = {routes}\nphp_value[session.save_path] = {sessions}\n"
    return harness.nginx_and_fpm(scratch, HERE / "slim", port, more)


FRAMEWORKS = (
    Framework("surus", "Surus", _nothing, _surus),
    Framework("axum", "axum, serde, validator", _build_axum, _axum),
    Framework("fastify", "Fastify", _node("fastify"), _node_server("fastify")),
    Framework("express", "Express, zod", _node("express"), _node_server("express")),
    Framework("fastapi", "FastAPI, uvicorn", _install_fastapi, _fastapi),
    Framework("slim", "Slim 3, php-fpm", _nothing, _slim, harness.CONNECTIONS + 3),
)
