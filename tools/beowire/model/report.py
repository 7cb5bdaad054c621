# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a fit says, in words and figures: the parameters with their intervals, other forms, doubts,
and which point to measure next."""

from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from rich.table import Table

from beowire.errors import BeowireError
from beowire.model.advice import GOOD, Advice, advise
from beowire.model.fit import Fit, Interval, fit, misfit
from beowire.model.forms import FORMULAS, Form, compare, likely, usl
from beowire.model.runs import Runs

_OPTIMUM = "nodes of the best speedup"
_FEW = 4
"""Runs beyond the unknowns; with fewer AICc is easily misled."""

DOUBT = 0.01
"""A misfit that chance brings about so seldom is told."""


@dataclass(frozen=True)
class Report:
    """All that is known of a program's speedup."""

    runs: Runs
    fit: Fit
    forms: list[Form]
    """The likeliest first."""
    advice: Advice
    misfit: float | None

    def as_json(self) -> dict[str, Any]:
        return {
            "model": "N T = c0 + c1 N + c2 N^3",
            "fit": self.fit.as_json(),
            "forms": [form.as_json() for form in self.forms],
            "misfit_probability": self.misfit,
            "next": asdict(self.advice),
            "verdict": verdict(self),
            "basis": self.runs.basis,
            "left_out": self.runs.left_out,
            "remarks": self.runs.remarks,
            "runs": [asdict(run) for run in self.runs.runs],
        }


def evaluate(runs: Runs, noise: float, most: int) -> Report:
    """`most` is the largest N that can be measured; 0: twice the largest measured."""
    import numpy as np

    nodes, times = runs.nodes(), runs.times()
    try:
        found = fit(nodes, times, noise)
        forms = compare(nodes, times)
        limit = most or 2 * int(nodes.max())
        advice = advise(found, nodes, likely(forms), limit)
        return Report(runs, found, forms, advice, misfit(nodes, times, found))
    except (np.linalg.LinAlgError, ArithmeticError) as error:
        raise BeowireError(
            f"No law can be fitted to these runs: their times lie too far apart ({error}).",
            "Are all times in the same unit?",
        ) from error


def summary(report: Report) -> str:
    """What was fitted."""
    nodes = report.runs.nodes()
    levels = len(set(nodes.tolist()))
    per_node = report.runs.runs[0].per_node
    ranks = f", {per_node} ranks per node" if per_node else ""
    return (
        f"{len(nodes)} runs at {levels} numbers of nodes from {nodes.min():g} to {nodes.max():g}"
        f"{ranks}; a run's noise is {100 * report.fit.noise:.2g} % of its time"
    )


def parameters(report: Report) -> Table:
    """The table of what was found; without a point where the data give none."""
    found = report.fit
    table = Table("", "", "estimate", "95 % interval")
    for column in (2, 3):
        table.columns[column].justify = "right"
    optimum, best = found.optimum_interval, found.best_interval
    share = _percent(found.a), _percents(found.a_interval)
    table.add_row("a", "serial share", *share)
    if found.clear:
        table.add_row("n", "communication", _figure(found.n), _between(found.n_interval))
        table.add_row("N_opt", _OPTIMUM, _figure(found.optimum), _between(optimum))
        table.add_row("S(N_opt)", "best speedup", _figure(found.best), _between(best))
        return table
    table.add_row("n", "communication", "-", f"at most {_figure(found.n_interval.high)}")
    table.add_row("N_opt", _OPTIMUM, "-", f"at least {_figure(optimum.low)}")
    table.add_row("S(N_opt)", "best speedup", "-", _between(best))
    return table


def words(found: Fit) -> tuple[str, str, str, str]:
    """a, n, N_opt and S(N_opt) with their intervals, or only those where there is no point."""
    a, n = found.a_interval, found.n_interval
    optimum, best = found.optimum_interval, found.best_interval
    share = f"{_percent(found.a)} ({_percents(a)})"
    if not found.clear:
        return (
            share,
            f"at most {_figure(n.high)}",
            f"at least {_figure(optimum.low)}",
            _between(best),
        )
    return (
        share,
        f"{_figure(found.n)} ({_between(n)})",
        f"{_figure(found.optimum)} ({_between(optimum)})",
        f"{_figure(found.best)} ({_between(best)})",
    )


def forms_table(report: Report) -> Table:
    table = Table("form", "N T", title="other laws", title_justify="left")
    for heading in ("unexplained", "AICc above best", "weight"):
        table.add_column(heading, justify="right")
    for form in report.forms:
        above = "-" if form.above is None else f"{form.above:.1f}"
        weight = "-" if form.weight is None else f"{form.weight:.2f}"
        unexplained = f"{100 * form.noise:.2g} %"
        table.add_row(form.name, FORMULAS[form.name], unexplained, above, weight)
    return table


def verdict(report: Report) -> list[str]:
    """What the data can tell and what not, in sentences."""
    return [*_optimum(report), *_doubts(report), *_forms(report), *_next(report)]


def _optimum(report: Report) -> list[str]:
    found, most = report.fit, report.runs.nodes().max()
    interval = found.optimum_interval
    if not found.clear:
        if found.inverse_cube.high <= 0:
            return [
                "The times fall faster than the law allows with any communication (c2 is below 0 "
                "beyond chance): no optimum. Do caches grow with N?"
            ]
        told = (
            "The data cannot tell where the best speedup is: communication is not clearly above 0."
        )
        bound = f" The optimum lies at {_figure(interval.low)} nodes or more."
        return [told + (bound if interval.low >= 1 else "")]
    # The farther end: the interval is wider above.
    off = max(interval.high / found.optimum - 1, 1 - interval.low / found.optimum)
    told = f"N_opt is known to within {100 * off:.0f} %"
    if found.optimum > most:
        return [f"{told}, if the law holds beyond the largest N measured ({most:g})."]
    return [f"{told}."]


def _doubts(report: Report) -> list[str]:
    lines = []
    if report.misfit is not None and report.misfit < DOUBT:
        lines.append(
            "The law does not fit: repeated runs agree far better with one another than with it "
            f"(probability {report.misfit:.1g}). The intervals hold only if it is true."
        )
    if report.fit.a_interval.high < 0:
        lines.append("The serial share is below 0: the speedup is more than linear (caches?).")
    return lines


def _forms(report: Report) -> list[str]:
    best = report.forms[0]
    if best.above is None:
        return ["Too few runs to compare the laws by AICc: at least six are needed."]
    names = [form.name for form in likely(report.forms)]
    lines = []
    if len(names) > 1:
        lines.append(f"The data cannot tell {best.name} from {', '.join(names[1:])}.")
    if "thesis" not in names:
        few = " With so few runs that may be chance." if report.fit.freedom < _FEW else ""
        lines.append(
            f"{best.name} fits clearly better than the thesis's law: N_opt and S(N_opt) above are "
            f"not to be relied on.{few}"
        )
    elif len(names) == 1:
        lines.append("The thesis's law is clearly the best of these.")
    if best.name == "N^2 (USL)":
        told = usl(best)
        lines.append(
            f"As USL: contention {told['contention']:.3g}, coherency {told['coherency']:.3g}."
        )
    return lines


def _next(report: Report) -> list[str]:
    advice = report.advice
    if report.fit.a_interval.high < 0:
        return ["What to measure next is not told: the law does not hold for such a speedup."]
    brings = (
        f"N_opt would be known to within {100 * advice.width:.0f} %"
        if advice.width is not None
        else "still no point for N_opt, but a closer bound"
    )
    lines = [f"Measure next: N = {advice.nodes}; after one run {brings}."]
    if advice.runs is None:
        lines.append(
            f"Runs at that N alone do not bring N_opt to within {100 * GOOD:.0f} %: measure "
            "further out (--most)."
        )
    elif advice.runs > 1:
        lines.append(f"{advice.runs} runs there bring it to within {100 * GOOD:.0f} %.")
    if advice.apart is not None:
        lines.append(
            f"The likely laws differ most at N = {advice.apart}, by {advice.apart_sigmas:.1f} "
            "times a run's noise."
        )
    return lines


def _figure(value: float) -> str:
    return "infinity" if abs(value) == inf else f"{value:.3g}"


def _between(interval: Interval) -> str:
    if interval.high == inf:
        return f"at least {_figure(interval.low)}"
    return f"{_figure(interval.low)} to {_figure(interval.high)}"


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def _percents(interval: Interval) -> str:
    return f"{100 * interval.low:.3g} to {100 * interval.high:.3g} %"
