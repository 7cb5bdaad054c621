# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench kernel`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from beowire import places, tabular
from beowire.bench import kernel_figures, result_file
from beowire.bench.kernel import Bench, Measured, Plan, Profile, Report
from beowire.errors import BeowireError
from beowire.terminal import note, out

_SHOWN = 40
"""Functions of a profile that are shown; the file has all."""


def parse_figures(text: str) -> list[kernel_figures.Figure]:
    names = [figure.name for figure in kernel_figures.FIGURES]
    wanted = [each.strip() for each in text.split(",") if each.strip()] if text else names
    if not wanted or not set(wanted) <= set(names):
        raise BeowireError(f"--figure {text}?", f"Choose among {', '.join(names)}.")
    return [figure for figure in kernel_figures.FIGURES if figure.name in wanted]


def parse_transports(text: str) -> set[str]:
    rows = [row for figure in kernel_figures.FIGURES for row in figure.rows]
    names = list(dict.fromkeys(row.transport for row in rows))
    wanted = {each.strip() for each in text.split(",")}
    if not wanted <= set(names):
        raise BeowireError(f"--transport {text}?", f"Choose among {', '.join(names)}.")
    return wanted


def run(
    figure: Annotated[str, typer.Option(help="Names of figures, with commas; default: all.")] = "",
    transport: Annotated[
        str, typer.Option(help="Only these transports beside the first, with commas.")
    ] = "",
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of all cases in a guest.")] = 2,
    repeats: Annotated[int, typer.Option(min=1, help="Guests, whose output must agree.")] = 3,
    profile: Annotated[
        int, typer.Option(min=0, help="Instead: where the instructions of N round trips go.")
    ] = 0,
    sort: Annotated[
        Literal["own", "whole"],
        typer.Option(help="Functions of a profile by their own instructions, or with callees'."),
    ] = "own",
    kernel: Annotated[
        str, typer.Option(help="Release of the kernel, such as 6.1.0-30-amd64; default: stock.")
    ] = "",
    chosen: tabular.Chosen = "table",
) -> None:
    """The kernel module beside TCP, UDP and raw sockets, in a guest that counts instructions."""
    if profile and chosen != "table":
        raise BeowireError(
            "A profile has no rows of figures.", "Leave out --format; --json FILE has all of it.", 2
        )
    figures = parse_figures(figure)
    if transport:
        figures = [each.only(parse_transports(transport)) for each in figures]
    if json_file is not None:
        places.check_output(json_file)
    bench = Bench(Plan(figures, kernel, rounds, repeats, profile))
    if profile:
        _profile(bench, json_file, sort)
    else:
        _measure(bench, json_file, chosen)


def _write(file: Path | None, result: dict[str, object]) -> None:
    if file is not None:
        places.write_json(file, result)


def _measure(bench: Bench, json_file: Path | None, chosen: tabular.Format) -> None:
    report = bench.measure(note)
    told = report.as_json()
    tabular.tell(chosen, figure_rows(told), lambda: _show(report))
    _write(json_file, result_file.stamped("kernel", told))
    if not report.identical:
        raise typer.Exit(1)


def _show(report: Report) -> None:
    for figure, rows in report.figures:
        out().print(figure_table(figure, rows))
    if report.repeats > 1 and any(not figure.wall for figure, _ in report.figures):
        same = "agree to the last bit" if report.identical else "do not agree"
        out().print(f"Kernel {report.kernel}. The {report.repeats} guests {same}.")


def figure_rows(told: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows of all figures, each with its figure's name and unit."""
    return [
        {"figure": figure["name"], "unit": figure["unit"], **tabular.flat(row)}
        for figure in told["figures"]
        for row in figure["rows"]
    ]


def _profile(bench: Bench, json_file: Path | None, sort: str) -> None:
    profiles = bench.profile(note)
    for each in profiles:
        out().print(profile_table(each, sort))
    _write(json_file, {each.row.case: [asdict(s) for s in each.shares] for each in profiles})


def figure_table(figure: kernel_figures.Figure, rows: list[Measured]) -> Table:
    """One figure; copied bytes are told by the module's counters, and for each byte of payload;
    the payload checksum's part of a row is told apart."""
    unit = "ns" if figure.wall else "instructions"
    table = Table("transport", "waiting", "options", title=f"{figure.name}: {figure.what}, {unit}")
    value = "p50" if figure.wall or figure.bulk else "mean"
    for heading in (value, "min", "max", "ratio", "checksum", "until sent", "copied tx", "rx"):
        table.add_column(heading, justify="right")
    for each in rows:
        table.add_row(
            each.row.transport,
            each.row.wait,
            each.row.remarks,
            f"{each.value:,.0f}",
            f"{each.min:,.0f}",
            f"{each.max:,.0f}",
            _ratio(figure, each),
            _told(each.checksum, 0),
            _told(each.sent, 0),
            _told(each.copied_tx, 2),
            _told(each.copied_rx, 2),
        )
    return table


def _ratio(figure: kernel_figures.Figure, measured: Measured) -> str:
    """Counted instructions repeat; of times the interval is told as well."""
    if measured.ratio is None:
        return ""
    return str(measured.ratio) if figure.wall else f"{measured.ratio.value:.3f}"


def _told(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def profile_table(profile: Profile, sort: str) -> Table:
    whole = sum(share.own for share in profile.shares)
    by_place: dict[str, float] = {}
    for share in profile.shares:
        by_place[share.place] = by_place.get(share.place, 0) + share.own
    parts = ", ".join(f"{name} {own:,.0f}" for name, own in by_place.items())
    table = Table(
        "function", "in", title=profile.row.case, caption=f"{whole:,.0f} instructions: {parts}"
    )
    for heading in ("own", "share", "with callees", "share", "calls"):
        table.add_column(heading, justify="right")
    ranked = sorted(profile.shares, key=lambda share: getattr(share, sort), reverse=True)
    for share in ranked[:_SHOWN]:
        table.add_row(
            share.function,
            share.place,
            f"{share.own:,.1f}",
            f"{100 * share.own / whole:.1f} %",
            f"{share.whole:,.1f}",
            f"{100 * share.whole / whole:.1f} %",
            f"{share.calls:.2f}",
        )
    return table
