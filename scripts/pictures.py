"""The pictures of the documents: `make pictures`, then look at them before they are committed.

docs/pictures/terminal.svg is recorded from real runs on this machine; console*.png and create-*.webp are the real
console in Chromium. docs/pictures/places.svg is drawn by hand.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import pyte

from scripts.steps import PROGRAM, steps
from tests.browser.chromium import chromium
from tests.browser.screenshots import pictures, some_jobs
from tests.console.api.running import served

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs" / "pictures"
COMMANDS = (
    "oarsman run -n 4 -- python3 -m mpi4py examples/hello/hello.py",
    "oarsman run examples/fails-on-one-rank/fails-on-one-rank.yaml",
)
PAGE = "overview"
COLUMNS, ROWS = 100, 26
_KEY = 0.03  # seconds between two typed letters
_READ = 2.5  # seconds to read what a command said
_FRAME = 0.08  # what changes faster is one frame
_WIDTH, _HEIGHT, _MARGIN = 8.43, 19, 18
_COLOURS = {
    "default": "#d6dbe1",
    "black": "#5c6773",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
    "white": "#ffffff",
}


@dataclass(frozen=True)
class Said:
    """What a command wrote, and when, in seconds since its start."""

    at: float
    text: bytes


def run(command: str, folder: str) -> list[Said]:
    """Runs it in a terminal of its own."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "XDG_STATE_HOME": folder}
    began = time.monotonic()
    process = subprocess.Popen(command.split(), stdin=child, stdout=child, stderr=child, cwd=ROOT, env=variables)
    os.close(child)
    said: list[Said] = []
    while select.select([parent], [], [], 60)[0]:
        try:
            said.append(Said(time.monotonic() - began, os.read(parent, 65536)))
        except OSError:  # the other end is closed
            break
    process.wait(60)
    os.close(parent)
    return said


def frames(folder: str) -> list[tuple[float, list[str]]]:
    """What the screen shows from when on: each frame with its rows as SVG."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    now, found = 0.0, [(0.0, rows(screen))]

    def show(at: float, text: bytes) -> None:
        stream.feed(text)
        drawn = rows(screen)
        if at - found[-1][0] < _FRAME and len(found) > 1:
            found[-1] = (found[-1][0], drawn)
        elif drawn != found[-1][1]:
            found.append((at, drawn))

    for command in COMMANDS:
        show(now, b"\x1b[1;32m$\x1b[0m ")
        now += 0.5
        for letter in command:
            now += _KEY
            show(now, letter.encode())
        show(now + 0.2, b"\r\n")
        said = run(command, folder)
        for each in said:
            show(now + 0.2 + each.at, each.text)
        now += 0.2 + said[-1].at + _READ
    return [*found, (now + _READ, found[-1][1])]


def rows(screen: pyte.Screen) -> list[str]:
    return [_row(screen, number) for number in range(ROWS)]


def _row(screen: pyte.Screen, number: int) -> str:
    """Letters that look alike stand in one element, at their column: a font is never exactly as wide as assumed."""
    line = [screen.buffer[number][column] for column in range(COLUMNS)]
    length = max((column + 1 for column, letter in enumerate(line) if letter.data != " "), default=0)
    starts = [
        column
        for column in range(length)
        if column == 0 or (line[column].fg, line[column].bold) != (line[column - 1].fg, line[column - 1].bold)
    ]
    parts = []
    for start, end in pairwise([*starts, length]):
        text = "".join(letter.data for letter in line[start:end])
        if text.strip():
            style = f' fill="{_COLOURS.get(line[start].fg, _COLOURS["default"])}"' * (line[start].fg != "default")
            style += ' font-weight="bold"' * line[start].bold
            wide = f'textLength="{(end - start) * _WIDTH:.1f}"'
            parts.append(f'<tspan x="{start * _WIDTH:.1f}" {wide}{style}>{escape(text)}</tspan>')
    return "".join(parts)


def svg(shown: list[tuple[float, list[str]]]) -> str:
    """A row is drawn once for as long as it stays the same. Where nothing moves, the last screen is seen."""
    total = shown[-1][0]
    styles: list[str] = []
    drawn: list[str] = []
    for number in range(ROWS):
        changes = [shown[0], *(b for a, b in pairwise(shown) if a[1][number] != b[1][number])]
        for (start, lines), (end, _) in pairwise([*changes, (total, [])]):
            if not lines[number]:
                continue
            last = end == total
            name = f"r{len(styles)}"
            first, until = 100 * start / total, 100 * end / total
            begin = f"0%{{visibility:hidden}}{first:.2f}%{{visibility:visible}}" if start else "0%{visibility:visible}"
            finish = "" if last else f"{until:.2f}%{{visibility:hidden}}"
            styles.append(f"@keyframes {name}{{{begin}{finish}}}#{name}{{animation-name:{name}}}")
            rest = "" if last else ' visibility="hidden"'
            drawn.append(f'<text id="{name}" y="{number * _HEIGHT}"{rest}>{lines[number]}</text>')
    width, height = COLUMNS * _WIDTH + 2 * _MARGIN, ROWS * _HEIGHT + 2 * _MARGIN
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}">',
            f"<title>{escape('; '.join(COMMANDS))}</title>",
            "<style>text{white-space:pre;font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
            f"fill:{_COLOURS['default']};animation:{total:.1f}s step-end infinite}}",
            *styles,
            "</style>",
            f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#10151c"/>',
            f'<g transform="translate({_MARGIN} {_MARGIN + 14})">',
            *drawn,
            "</g></svg>\n",
        )
    )


def terminal() -> None:
    folder = tempfile.mkdtemp(prefix="oarsman-pictures-")
    variables = {**os.environ, "XDG_STATE_HOME": folder}
    try:
        (OUT / "terminal.svg").write_text(svg(frames(folder)))
    finally:
        subprocess.run(["oarsman", "-q", "supervisor", "stop"], env=variables, check=False)
        shutil.rmtree(folder)


def console() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder) / "state") as server,
        chromium() as browser,
    ):
        program = Path(folder, PROGRAM)
        program.parent.mkdir(parents=True)
        shutil.copy(ROOT / PROGRAM, program)
        for language in ("en", "zh"):
            steps(browser, server, language, OUT)
        with some_jobs(server, Path(folder)):
            for language, name in (("en", "console.png"), ("zh", "console.zh-CN.png")):
                pictures(browser, server, (language, "light", "desk"), {PAGE: OUT / name})


def main() -> int:
    OUT.mkdir(exist_ok=True)
    terminal()
    console()
    for file in sorted(OUT.iterdir()):
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
