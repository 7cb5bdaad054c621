# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An experiment, and what it is given to run with."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from beowire.errors import BeowireError
from beowire.evidence.entry import Parameters
from beowire.evidence.figures import Figures


class CannotRunError(Exception):
    """This machine, or this build, lacks what an experiment needs; the text says what."""


@dataclass(frozen=True)
class Context:
    """What an experiment is given beside its parameters."""

    say: Callable[[str], None]
    """Hears what is done now."""
    directory: Path
    """For results that are kept while the experiment is under way."""
    deadline_s: float
    """By time.monotonic()."""

    def tell(self, text: str) -> None:
        """Says what is done next, if there is time for it: measurements of other packages that know
        no deadline end so between two of their runs."""
        self.left_s()
        self.say(text)

    def left_s(self) -> float:
        """What is left of its time. Raises BeowireError when nothing is."""
        left = self.deadline_s - time.monotonic()
        if left <= 0:
            raise BeowireError(
                "Its time is over.", "Run it by itself (--only), or without --quick."
            )
        return left


@dataclass(frozen=True)
class Experiment:
    """A function of this package and what it is expected to take."""

    function: str
    """module:name, in `experiments`."""
    quick_s: float
    full_s: float
    root: bool = True
    """It makes a lab of namespaces."""

    def expected_s(self, quick: bool) -> float:
        return self.quick_s if quick else self.full_s

    def run(self, parameters: Parameters, context: Context) -> Figures:
        module, _, name = self.function.partition(":")
        found = getattr(import_module(f"beowire.evidence.experiments.{module}"), name)
        figures = found(parameters, context)
        assert isinstance(figures, Figures)
        return figures


EXPERIMENTS = {
    "law": Experiment("law:curves", 1, 1, root=False),
    "speedup": Experiment("programs:speedup", 25, 300),
    "receive-buffer": Experiment("files:receive_buffer", 15, 600),
    "offloads": Experiment("pairs:offloads", 45, 300),
    "stacks": Experiment("pairs:stacks", 12, 120),
    "waiting": Experiment("pairs:waiting", 45, 200),
    "frames": Experiment("pairs:frames", 25, 120),
    "mitigation": Experiment("pairs:mitigation", 25, 120),
    "mixed-path": Experiment("pairs:mixed_path", 6, 60),
    "channels": Experiment("pairs:channels", 30, 150),
    "guest": Experiment("guest:instructions", 140, 1200, root=False),
    "overlap": Experiment("guest:overlap", 600, 1200, root=False),
    "pi": Experiment("programs:pi", 60, 400),
    "tridiagonal": Experiment("programs:tridiagonal", 80, 400),
    "distant": Experiment("distant:sweep", 45, 36000),
    "verdict": Experiment("distant:verdict", 15, 7200),
    "inside": Experiment("inside:pair", 50, 600),
    "one-to-many": Experiment("inside:many", 60, 600),
    "activation": Experiment("nodes:activation", 10, 120, root=False),
    "place": Experiment("nodes:place", 2, 120, root=False),
    "replicate": Experiment("nodes:replicate", 2, 120, root=False),
    "text": Experiment("text:text_pages", 60, 60, root=False),
}
