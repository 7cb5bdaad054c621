# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A task graph drawn in its tiers, the critical path in red, and a schedule as bars below."""

from pathlib import Path
from typing import TYPE_CHECKING

from beowire import drawing
from beowire.model.graph import Tiers
from beowire.model.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from networkx import DiGraph

_NAMED_MOST = 150
"""Tasks up to which their names are written."""


def draw(graph: "DiGraph[str]", form: Tiers, schedule: Schedule, file: Path | None) -> None:
    """Writes both into one file."""
    across = min(max(8.0, 1.3 * len(form.tiers)), 40.0)
    up = min(max(3.0, 0.6 * form.width), 30.0)
    rows = max(2.0, 0.4 * schedule.used)
    figure = drawing.figure(across, up + rows + 1)
    above, below = figure.subplots(2, 1, height_ratios=[up, rows])
    _graph(above, graph, form)
    _bars(below, schedule, set(form.path), len(graph))
    drawing.save(figure, file)


def _graph(axes: "Axes", graph: "DiGraph[str]", form: Tiers) -> None:
    import networkx as nx

    places = {
        task: (number, (len(row) - 1) / 2 - place)
        for number, row in enumerate(form.tiers, 1)
        for place, task in enumerate(row)
    }
    steps = set(zip(form.path, form.path[1:], strict=False))
    tasks = ["#f4b6a6" if task in form.path else "#cfe2f3" for task in graph]
    edges = ["#c0392b" if edge in steps else "#777777" for edge in graph.edges]
    named = len(graph) <= _NAMED_MOST
    size = 900 if named else 60
    nx.draw_networkx_nodes(
        graph, places, ax=axes, node_color=tasks, edgecolors="#555555", node_size=size
    )
    # Arrows are drawn one by one, plain lines all at once.
    nx.draw_networkx_edges(
        graph, places, ax=axes, edge_color=edges, node_size=size, arrows=None if named else False
    )
    if named:
        words = {task: f"{task}\n{cost:g}" for task, cost in graph.nodes(data="cost")}
        nx.draw_networkx_labels(graph, places, words, ax=axes, font_size=7)
        costs = {(t, h): f"{cost:g}" for t, h, cost in graph.edges(data="cost") if cost}
        nx.draw_networkx_edge_labels(graph, places, costs, ax=axes, font_size=6)
    axes.tick_params(bottom=True, labelbottom=True)
    axes.set_xticks(range(1, len(form.tiers) + 1))
    axes.set_xlabel("tier")
    axes.margins(0.08)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)


def _bars(axes: "Axes", schedule: Schedule, critical: set[str], tasks: int) -> None:
    for slot in schedule.slots:
        axes.barh(
            slot.node,
            slot.end - slot.start,
            left=slot.start,
            color="#f4b6a6" if slot.task in critical else "#cfe2f3",
            edgecolor="#555555",
        )
        if tasks <= _NAMED_MOST:
            middle = (slot.start + slot.end) / 2
            axes.text(middle, slot.node, slot.task, ha="center", va="center", fontsize=7)
    axes.set_yticks(sorted({slot.node for slot in schedule.slots}))
    axes.invert_yaxis()
    axes.set_ylabel("node")
    axes.set_xlabel(f"time; ends at {schedule.time:g}")
