# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Drawings to a file, and to a report that is open, by matplotlib, without a display.

matplotlib is imported where it is used: it would cost every start of the command half a second.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from beowire import places, report, suggested
from beowire.errors import BeowireError
from beowire.terminal import note

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_file(file: Path) -> None:
    """Fails unless a drawing can be written there, so that nothing is computed in vain."""
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    if file.suffix.removeprefix(".") not in kinds:
        raise BeowireError(
            f"{file} names no kind of drawing.", f"End it with .{', .'.join(sorted(kinds))}."
        )
    places.check_replaceable(file)
    places.check_output(file)


def wanted(file: Path | None) -> bool:
    """Whether there is any place for a drawing. What was found must not be lost to a report that
    has none for lack of matplotlib; a file was checked before."""
    if file is not None or not report.is_open():
        return file is not None
    if suggested.there("matplotlib"):
        return True
    note(f"The report has no drawing. {suggested.lacking('matplotlib')}")
    return False


def figure(width: float, height: float) -> "Figure":
    """An empty figure of that many inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def save(drawn: "Figure", file: Path | None) -> None:
    """Writes it, whole or not at all; None: to the report only."""
    report.add_figure(drawn)
    if file is None:
        return
    try:
        with places.replacing(file) as part:
            drawn.savefig(part)
    except OSError as error:
        raise BeowireError(
            f"{file} cannot be written: {error.strerror or error}.", "Name another place."
        ) from error
