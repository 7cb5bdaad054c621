# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A report: what commands found, with their drawings, in one HTML file that needs nothing else.

`./beowire --report FILE COMMAND ...` runs the command as ever and adds a section to the file, which
is made if it is not there: the command line, when and where it ran, what it printed to standard
output, its drawings, how it ended. What programs print that a command starts is not in it.

One report at a time, of the process. Several processes may add to one file.
"""

import base64
import contextlib
import fcntl
import html
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

from rich.console import Console
from rich.text import Text

from beowire import __version__, places
from beowire.errors import BeowireError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIRST = "<!-- a report of beowire -->"
_LAST = "<!-- the next section goes here -->"
_WIDTH = 400
"""Of lines, which are not to be broken again."""

_PAGE = f"""<!DOCTYPE html>
{_FIRST}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Beowire: report</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; color: #222 }}
h2 {{ font: bold 1.1em monospace; border-top: 1px solid #bbb; padding-top: 1em }}
pre {{ font: 13px/1.25 monospace; overflow-x: auto; background: #f6f6f6; padding: 0.8em }}
img {{ max-width: 100% }}
.about {{ color: #666; margin: -0.6em 0 1em }}
.failed {{ color: #a00 }}
</style>
</head>
<body>
<h1>Beowire: report</h1>
{_LAST}
</body>
</html>
"""


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
    images: list[bytes] = field(default_factory=list)
    """As SVG."""


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
        _section.images.append(image.getvalue())


def add_image(svg: str) -> None:
    """A drawing as SVG; without a report nothing happens."""
    if _section is not None:
        _section.images.append(svg.encode())


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
        page = _read(section.file) if section.file.exists() else ""
        page = (page or _PAGE).replace(_LAST, f"{written}{_LAST}")
        with places.replacing(section.file) as part:
            places.write_output(part, page)


def _read(file: Path) -> str:
    """The page as it is; empty if nothing is there yet."""
    try:
        page = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BeowireError(f"{file} cannot be read: {error}.", "Name another report.") from error
    if page and (_FIRST not in page or page.count(_LAST) != 1):
        raise BeowireError(f"{file} is no report of beowire.", "Name another file by --report.")
    return page


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
    command = shlex.join(["./beowire", *without(section.words)])
    took = time.time() - section.began
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(section.began))
    about = (
        f"{when}, {took:.1f} s, {platform.node()}, Linux {platform.release()}, "
        f"{os.cpu_count()} processors, beowire {__version__}"
    )
    lines = [f"<section>\n<h2>{html.escape(command)}</h2>"]
    lines.append(f'<p class="about">{html.escape(about)}</p>')
    if text := section.tee.kept.getvalue().rstrip():
        lines.append(_pre(text))
    for image in section.images:
        data = base64.b64encode(image).decode()
        lines.append(f'<p><img alt="drawing" src="data:image/svg+xml;base64,{data}"></p>')
    if status:
        told = f"It ended with status {status}. {why}"
        lines.append(f'<p class="failed">{html.escape(told)}</p>')
    return "\n".join([*lines, "</section>\n"])


def _pre(text: str) -> str:
    """Text as a terminal shows it, colours and all."""
    console = Console(record=True, file=io.StringIO(), width=_WIDTH, highlight=False)
    console.print(Text.from_ansi(text), soft_wrap=True)
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
