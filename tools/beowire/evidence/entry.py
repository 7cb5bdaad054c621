# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An entry: one table, figure or stated number of a paper, and what would confirm it here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from beowire.evidence.criterion import Criterion
from beowire.evidence.figures import Figures

Parameters = Mapping[str, Any]
"""Of an experiment: numbers, text, and tuples of them."""


@dataclass(frozen=True)
class Stated:
    """What the paper has."""

    where: str
    """Its figure, table or section."""
    says: str
    """In a sentence."""
    values: Figures = field(default_factory=Figures)


@dataclass(frozen=True)
class Measure:
    """An experiment with its parameters, for --quick and for a whole run."""

    experiment: str
    quick: Parameters = field(default_factory=dict)
    full: Parameters = field(default_factory=dict)

    def parameters(self, quick: bool) -> Parameters:
        return self.quick if quick else self.full


@dataclass(frozen=True)
class Explanation:
    """Why ours may differ, with what must hold for that to be so. It is tested, not supposed."""

    says: str
    criterion: Criterion
    measure: Measure | None = None
    """None: the entry's own figures tell."""


@dataclass(frozen=True)
class Entry:
    """One entry."""

    id: str
    label: str
    """Of the paper's finding, such as C2."""
    title: str
    paper: Stated
    measure: Measure
    criterion: Criterion
    explanation: Explanation | None = None
    across: str = ""
    """What x is in the curves, with its unit."""
    up: str = ""
    """What y is."""
    logarithmic: bool = False
    """Both axes, when it is drawn."""
    drawn: tuple[str, ...] = ()
    """The curves that belong to these axes; empty: those that the criterion is about."""
