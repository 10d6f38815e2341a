"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

from .peers import Site


def describe(site: Site, names: set[str]) -> str:
    """CPU, kernel and versions in one line."""
    with open("/proc/meminfo", encoding="ascii") as file:
        gib = int(file.readline().split()[1]) / 2**20
    parts = [
        f"{cpu_model()}, {os.cpu_count()} cores, {gib:.0f} GiB",
        f"{_os_name()}, Linux {platform.release()}",
        _version(["wrk", "-v"], r"wrk (\S+)", "wrk"),
    ]
    if names & {"surus", "surus-classic"}:
        parts.append(_version([str(site.surus), "--version"], r"(\d+\.\d+\S*)", "Surus"))
    if "limit" in names:
        parts.append(f"hyper {_locked('hyper')}, tokio {_locked('tokio')}")
    if "nginx-fpm" in names:
        parts.append(_version(["nginx", "-v"], r"nginx/(\S+)", "nginx"))
    if "mod_php" in names:
        parts.append(_version(["apache2", "-v"], r"Apache/(\S+)", "Apache"))
    parts.append(_version(["php", "-v"], r"PHP (\S+)", "PHP"))
    return " · ".join(parts)


def cpu_model() -> str:
    """As /proc/cpuinfo names it."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _version(argv: list[str], pattern: str, name: str) -> str:
    environment = os.environ | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False, env=environment)
    except (OSError, subprocess.SubprocessError):
        return f"{name} ?"
    found = re.search(pattern, done.stdout + done.stderr)
    return f"{name} {found.group(1)}" if found else f"{name} ?"


def _locked(package: str) -> str:
    lock = Path(__file__).parents[2] / "Cargo.lock"
    if not lock.exists():
        return "?"
    found = re.search(rf'name = "{package}"\nversion = "([^"]+)"', lock.read_text(encoding="utf-8"))
    return found.group(1) if found else "?"
