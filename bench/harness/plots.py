"""Bar charts as SVG, written by hand: no library, same look everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from pathlib import Path

from .report import latency
from .rounds import Row

COLOURS = {
    "surus": "#c2410c",
    "surus-classic": "#c2410c",
    "limit": "#64748b",
    "nginx-fpm": "#15803d",
    "mod_php": "#7c3aed",
}
WIDTH = 860
LEFT = 240
RIGHT = 110
BAR = 16
GAP = 18
TOP = 74


@dataclass(frozen=True)
class Bar:
    """One bar: who, how much, and how it is written."""

    server: str
    title: str
    value: float
    text: str


def bars(heading: str, subheading: str, groups: list[tuple[str, list[Bar]]]) -> str:
    """Groups of horizontal bars on a logarithmic scale: the values span three orders of magnitude."""
    values = [bar.value for _, group in groups for bar in group if bar.value > 0]
    low = 10 ** math.floor(math.log10(min(values, default=1)))
    high = 10 ** math.ceil(math.log10(max(values, default=10)) + 1e-9)
    decades = round(math.log10(high / low))
    span = WIDTH - LEFT - RIGHT

    def x(value: float) -> float:
        return LEFT + span * math.log10(value / low) / decades

    height = TOP + sum(len(group) * BAR + GAP for _, group in groups) + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="17" font-weight="600" fill="#0f172a">{escape(heading)}</text>',
        f'<text x="16" y="44" fill="#475569">{escape(subheading)}</text>',
    ]
    out += _legend(groups)
    for step in range(decades + 1):
        value = low * 10**step
        out.append(
            f'<line x1="{x(value):.1f}" y1="{TOP}" x2="{x(value):.1f}" y2="{height - 26}" stroke="#e2e8f0"/>'
            f'<text x="{x(value):.1f}" y="{height - 10}" text-anchor="middle" fill="#475569">{axis(value)}</text>'
        )
    y = float(TOP)
    for title, group in groups:
        middle = y + GAP / 2 + len(group) * BAR / 2 + 4
        out.append(f'<text x="{LEFT - 10}" y="{middle:.1f}" text-anchor="end" fill="#0f172a">{escape(title)}</text>')
        for index, bar in enumerate(group):
            top = y + GAP / 2 + index * BAR
            end = x(bar.value) if bar.value > 0 else LEFT
            out.append(
                f'<rect x="{LEFT}" y="{top:.1f}" width="{max(1.0, end - LEFT):.1f}" height="{BAR - 3}" rx="2" '
                f'fill="{COLOURS[bar.server]}"><title>{escape(bar.title)}: {escape(bar.text)}</title></rect>'
                f'<text x="{end + 5:.1f}" y="{top + BAR - 5:.1f}" fill="#0f172a">{escape(bar.text)}</text>'
            )
        y += len(group) * BAR + GAP
    return "\n".join(out) + "\n</svg>\n"


def axis(value: float) -> str:
    """A power of ten in full."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _legend(groups: list[tuple[str, list[Bar]]]) -> list[str]:
    seen: dict[str, str] = {}
    for _, group in groups:
        for bar in group:
            seen.setdefault(bar.title, COLOURS[bar.server])
    out, at = [], 16.0
    for title, colour in seen.items():
        out.append(f'<rect x="{at:.1f}" y="54" width="10" height="10" rx="2" fill="{colour}"/>')
        out.append(f'<text x="{at + 15:.1f}" y="63" fill="#334155">{escape(title)}</text>')
        at += 34 + 7.2 * len(title)
    return out


def write(folder: Path, rows: list[Row], titles: dict[str, str]) -> list[tuple[str, str]]:
    """requests.svg, cpu.svg and latency.svg; returns title and file name of each."""
    charts: list[tuple[str, str, str, list[tuple[str, list[Bar]]]]] = [
        ("requests.svg", "Requests per second", "higher is better · one core · logarithmic", []),
        ("cpu.svg", "CPU time per request, µs", "lower is better · user + system, all processes · logarithmic", []),
        ("latency.svg", "99th percentile of latency, ms", "lower is better · 64 connections · logarithmic", []),
    ]
    for row in rows:
        found: list[list[Bar]] = [[], [], []]
        for name, title in titles.items():
            speed = row.spread(name, lambda result: result.requests_per_second)
            cpu = row.spread(name, lambda result: result.cpu_per_request)
            p99 = row.spread(name, lambda result: result.p99)
            if speed is None or cpu is None or p99 is None:
                continue
            found[0].append(Bar(name, title, speed.median, f"{speed.median:,.0f}"))
            found[1].append(Bar(name, title, cpu.median, f"{cpu.median:.2f}"))
            found[2].append(Bar(name, title, p99.median, latency(p99.median)))
        label = f"{row.workload.title.replace('`', '')}, {row.variant}"
        for chart, group in zip(charts, found):
            if group:
                chart[3].append((label, group))
    written = []
    for file, heading, subheading, groups in charts:
        if groups:
            (folder / file).write_text(bars(heading, subheading, groups), encoding="utf-8")
            written.append((heading, file))
    return written
