# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire report`."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from beowire import drawing, places
from beowire.errors import BeowireError
from beowire.report import contents, formats
from beowire.report.contents import Contents
from beowire.report.source import WRONG_USE
from beowire.terminal import note

Format = Literal["html", "md", "csv", "png", "svg", "pdf"]
_SUFFIXES: dict[str, Format] = {
    ".htm": "html",
    ".html": "html",
    ".md": "md",
    ".csv": "csv",
    ".png": "png",
    ".svg": "svg",
    ".pdf": "pdf",
}
_PRINTED = ("md", "csv")
_CHARTS_MOST = {"png": 40, "svg": 40, "pdf": 400}
"""Below one another; each page of a PDF has one."""


def report(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What --json wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Default: report.html in this place."),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Default: what the name of the output says, else html."),
    ] = None,
) -> None:
    """One page of any results: tables that sort, charts with values, files compared."""
    chosen = form or _SUFFIXES.get(output.suffix if output is not None else ".html")
    if chosen is None:
        raise BeowireError(
            f"{output} names no kind of report.",
            f"End it with {', '.join(_SUFFIXES)}, or say --format.",
            WRONG_USE,
        )
    if output is None and chosen not in _PRINTED:
        output = Path(f"report.{chosen}")
    if output is not None:
        _check(output, files)
    found = contents.of(files)
    for each in found.remarks:
        note(each)
    if output is None:
        sys.stdout.write(formats.markdown(found) if chosen == "md" else formats.csv(found))
        return
    try:
        with places.replacing(output) as part:
            _write(found, chosen, part)
    except OSError as error:
        raise BeowireError(
            f"{output} cannot be written: {error.strerror or error}.", "Name another place."
        ) from error
    count = len(formats.charts(found))
    note(f"{output}: {len(found.sections)} sections, {count} charts")


def _check(output: Path, files: list[Path]) -> None:
    places.check_replaceable(output)
    if any(output.exists() and each.exists() and output.samefile(each) for each in files):
        raise BeowireError(
            f"{output} is one of the files to be shown.", "Name another by -o.", WRONG_USE
        )
    places.check_output(output)


def _write(found: Contents, chosen: Format, to: Path) -> None:
    texts = {"html": formats.html, "md": formats.markdown, "csv": formats.csv}
    if (text := texts.get(chosen)) is not None:
        to.write_text(text(found))
        return
    charts, most = formats.charts(found), _CHARTS_MOST[chosen]
    if not charts:
        raise BeowireError("These files have no charts.", "Use --format html, md or csv.")
    if len(charts) > most:
        raise BeowireError(
            f"{len(charts)} charts are too many for {chosen}, which takes {most}.",
            "Give fewer files, or use --format html.",
        )
    drawing.write_charts(charts, to, chosen)
