"""How figures grow with the number of jobs, as an SVG: one panel per figure, one line per operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log10
from xml.sax.saxutils import escape

Growth = dict[str, list[tuple[int, Mapping[str, float]]]]  # by operator: a number of jobs, and the figures of these

PANELS = ("memory, max, MiB", "CPU time per job, ms", "requests per job")
_COLOURS = ("#1f6feb", "#d1242f")
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 260, 180, 20, 50, 80


def svg(growth: Growth) -> str:
    width, height = _LEFT + len(PANELS) * (_WIDTH + _GAP), _TOP + _HEIGHT + 40
    font = 'font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {font}>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for at, (name, colour) in enumerate(zip(growth, _COLOURS, strict=False)):
        parts.append(_text(_LEFT + 130 * at, 18, f"\u25cf {name}", colour))
    for at, label in enumerate(PANELS):
        parts.append(_panel(growth, label, _LEFT + _GAP // 2 + at * (_WIDTH + _GAP)))
    return "\n".join([*parts, "</svg>\n"])


def _panel(growth: Growth, label: str, left: float) -> str:
    lines = {name: [(jobs, figures[label]) for jobs, figures in points] for name, points in growth.items()}
    counts = sorted({jobs for points in lines.values() for jobs, _ in points})
    most = max(value for points in lines.values() for _, value in points)
    top = most * 1.1
    decades = log10(counts[-1] / counts[0]) or 1.0

    def x(jobs: float) -> float:
        return left + _WIDTH * log10(jobs / counts[0]) / decades

    def y(value: float) -> float:
        return _TOP + _HEIGHT * (1 - value / top)

    parts = [
        _text(left, _TOP - 10, label),
        f'<path d="M{left} {_TOP}v{_HEIGHT}h{_WIDTH}" fill="none" stroke="#57606a"/>',
        *(_text(left - 4, y(value) + 4, _shown(value), anchor="end") for value in (0, most / 2, most)),
        *(_text(x(jobs), _TOP + _HEIGHT + 16, f"{jobs:,}", anchor="middle") for jobs in counts),
    ]
    for points, colour in zip(lines.values(), _COLOURS, strict=False):
        places = [(x(jobs), y(value)) for jobs, value in points]
        parts += _line(places, colour)
        parts.append(_text(places[-1][0] + 6, places[-1][1] + 4, _shown(points[-1][1]), colour))
    return "\n".join(parts)


def _line(places: Sequence[tuple[float, float]], colour: str) -> list[str]:
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    return [f'<polyline points="{way}" fill="none" stroke="{colour}"/>', *dots]


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _text(x: float, y: float, words: str, colour: str = "#1f2328", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>'
