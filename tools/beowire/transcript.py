# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What commands told, with their drawings, as sections of a page (page.py).

`./beowire --report FILE COMMAND ...` runs the command as ever and adds a section to the page, which
is made if it is not there: the command line, when and where it ran, what it printed to standard
output, its drawings, how it ended. What programs print that a command starts is not in it.

One report at a time, of the process. Several processes may add to one file.
"""

import contextlib
import fcntl
import io
import os
import platform
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from beowire import __version__, installed, page, places
from beowire.errors import BeowireError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from beowire.chart import Chart

_TITLE = "Beowire: report"


class _Tee(io.TextIOBase):
    """Passes text on, and keeps it."""

    def __init__(self, target: TextIO) -> None:
        self.target = target
        self.kept = io.StringIO()

    def write(self, text: str) -> int:
        self.kept.write(text)
        return self.target.write(text)

    def flush(self) -> None:
        self.target.flush()

    def isatty(self) -> bool:
        return self.target.isatty()

    def fileno(self) -> int:
        return self.target.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.target.encoding


@dataclass
class _Section:
    """What is found by the command that runs."""

    file: Path
    words: list[str]
    tee: _Tee
    began: float = field(default_factory=time.time)
    shown: list[str] = field(default_factory=list)
    """Charts and drawings, as HTML."""


_section: _Section | None = None


def without(words: list[str]) -> list[str]:
    """The command line without its `--report`, which stands before the command."""
    if words[:1] == ["--report"]:
        return words[2:]
    return words[1:] if words and words[0].startswith("--report=") else words


def begin(file: Path, words: list[str]) -> None:
    """From here on to the end of `kept()` what is printed and drawn goes to the file as well.
    Raises BeowireError if it cannot be written, or is something else than a report."""
    global _section
    places.check_replaceable(file)
    places.check_output(file)
    if file.exists() and file.stat().st_size:
        _read(file)
    tee = _Tee(sys.stdout)
    sys.stdout = tee
    _section = _Section(file, words, tee)


def is_open() -> bool:
    """Whether drawings are wanted for a report."""
    return _section is not None


def add_figure(drawn: "Figure") -> None:
    """A drawing of matplotlib; without a report nothing happens."""
    if _section is not None:
        image = io.BytesIO()
        drawn.savefig(image, format="svg")
        _section.shown.append(page.image(image.getvalue()))


def add_image(svg: str) -> None:
    """A drawing as SVG; without a report nothing happens."""
    if _section is not None:
        _section.shown.append(page.image(svg.encode()))


def add_chart(told: "Chart") -> None:
    """A chart; without a report nothing happens."""
    if _section is not None:
        _section.shown.append(page.chart(told))


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Around a command: when it ends, however it does, its section is written."""
    try:
        yield
    except SystemExit as end:
        _end(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    except BeowireError as error:
        _end(error.code, str(error))
        raise
    except KeyboardInterrupt:
        _end(130, "interrupted")
        raise
    _end(0)


def _end(status: int, why: str = "") -> None:
    global _section
    if (section := _section) is None:
        return
    _section = None
    sys.stdout = section.tee.target
    written = _written(section, status, why)
    with _locked(section.file.absolute().parent):
        before = _read(section.file) if section.file.exists() else ""
        with places.replacing(section.file) as part:
            places.write_output(part, page.add(before or page.empty(_TITLE), written))


def _read(file: Path) -> str:
    """The page as it is; empty if nothing is there yet."""
    try:
        before = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BeowireError(f"{file} cannot be read: {error}.", "Name another report.") from error
    if before and not page.is_page(before):
        raise BeowireError(
            f"{file} is no report of beowire, or one of another version.",
            "Name another file by --report.",
        )
    return before


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Whoever else adds to a report in there waits."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _written(section: _Section, status: int, why: str) -> str:
    command = shlex.join([installed.COMMAND, *without(section.words)])
    took = time.time() - section.began
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(section.began))
    about = (
        f"{when}, {took:.1f} s, {platform.node()}, Linux {platform.release()}, "
        f"{os.cpu_count()} processors, beowire {__version__}"
    )
    lines = [f'<section>\n<h2 class="command">{page.text(command)}</h2>']
    lines.append(f'<p class="about">{page.text(about)}</p>')
    if told := section.tee.kept.getvalue().rstrip():
        lines.append(page.terminal(told))
    lines += section.shown
    if status:
        ended = f"It ended with status {status}. {why}"
        lines.append(f'<p class="failed">{page.text(ended)}</p>')
    return "\n".join([*lines, "</section>\n"])
