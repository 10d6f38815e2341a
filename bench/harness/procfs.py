"""What the kernel knows of processes and cores, read from /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
#: The kind of a process's CPU clock that counts to the nanosecond (linux/posix-timers.h).
_CPUCLOCK_SCHED = 2


@dataclass(frozen=True)
class Stat:
    """The fields of /proc/PID/stat that matter here; times in clock ticks."""

    parent: int
    state: str
    #: utime + stime, of ended threads, too
    own: int
    #: cutime + cstime: of ended children that were waited for
    ended_children: int

    @property
    def ticks(self) -> int:
        """Time is not lost when a child of a pool ends."""
        return self.own + self.ended_children


def stat(pid: int) -> Stat | None:
    """None when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The command name may hold spaces and parentheses: the fields begin after the last parenthesis.
    fields = text[text.rindex(b")") + 2 :].split()
    utime, stime, cutime, cstime = (int(field) for field in fields[11:15])
    return Stat(int(fields[1]), fields[0].decode(), own=utime + stime, ended_children=cutime + cstime)


def tree(roots: Iterable[int]) -> set[int]:
    """The given processes and all their descendants that are alive."""
    children: dict[int, list[int]] = {}
    alive: set[int] = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := stat(int(name))) and found.state not in "ZX":
            alive.add(int(name))
            children.setdefault(found.parent, []).append(int(name))
    result: set[int] = set()
    waiting = [pid for pid in roots if pid in alive]
    while waiting:
        pid = waiting.pop()
        result.add(pid)
        waiting.extend(children.get(pid, []))
    return result


def ticks(pids: Iterable[int]) -> int:
    """CPU time, user and system, in clock ticks (10 ms) of the processes together."""
    return sum(found.ticks for pid in pids if (found := stat(pid)))


def seconds(pids: Iterable[int]) -> float:
    """The same time as `ticks`, to the nanosecond: from the CPU-time clock of each process (clock_getcpuclockid(3)).

    Ticks are cut off for each process. The children of a pool share the work evenly, so their cut-offs do not cancel out:
    64 children can hide more than half a second. Of children that have ended only the ticks are known.
    """
    total = 0.0
    for pid in pids:
        if found := stat(pid):
            try:
                own = time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
            except OSError:  # it ended just now
                own = found.own / TICKS_PER_SECOND
            total += own + found.ended_children / TICKS_PER_SECOND
    return total


def switches(pids: Iterable[int]) -> int:
    """How often the threads of the processes were put on a core so far: wake-ups, as far as an idle process goes."""
    return sum(times for pid in pids for _, times in _threads(pid))


def _threads(pid: int) -> list[tuple[int, int]]:
    """For each thread: nanoseconds on a core, times put on a core."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                running, _waiting, times = map(int, file.read().split())
            found.append((running, times))
    except OSError:
        pass  # it ended, or the kernel does not say
    return found


@dataclass(frozen=True)
class Memory:
    """In KiB. RSS counts shared pages in each process, PSS divides them among those who share."""

    processes: int
    largest_rss: int
    total_pss: int


def memory(pids: Iterable[int]) -> Memory:
    """Resident memory of the processes."""
    rss: list[int] = []
    pss = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                fields = dict(line.split()[:2] for line in file if line.startswith(("Rss:", "Pss:")))
        except OSError:
            continue
        rss.append(int(fields["Rss:"]))
        pss += int(fields["Pss:"])
    return Memory(processes=len(rss), largest_rss=max(rss, default=0), total_pss=pss)


def core_busy(core: int) -> float:
    """Seconds since boot in which the core did anything but idle, stolen time included."""
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            if line.startswith(f"cpu{core} "):
                user, nice, system, _idle, _wait, irq, softirq, steal = map(int, line.split()[1:9])
                return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND
    raise ValueError(f"no core {core}")
