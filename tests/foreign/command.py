# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command lines that run a case on the nodes of a lab."""

import shlex
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from beowire import places
from beowire.run import launch
from beowire.run.cluster import Cluster
from beowire.run.launch import Command, Job
from case import Case
from record import CONTROL

_HERE = Path(__file__).parent
_PROVIDERS = {"beowire": "beowire", "tcp": "tcp;ofi_rxm"}


@dataclass
class Bench:
    """A lab of its own for tests one after another, and what is known of launching there."""

    cluster: Cluster
    _known: dict[tuple[str, str, int], Command] = field(default_factory=dict)

    @property
    def directory(self) -> Path:
        """For a launcher's files; as it lies in the lab's, it goes with the lab."""
        assert self.cluster.lab is not None
        return self.cluster.lab.directory / "foreign"

    @property
    def begun(self) -> Path:
        """Where each rank leaves a file as it begins."""
        return self.directory / "begun"

    def cleared(self) -> None:
        """Nothing is left of the test before."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.begun.mkdir(parents=True)

    def command(self, case: Case, library: str, transport: str) -> Command:
        """What runs the case over this transport; `library` names the MPI, if there is one."""
        if case.script:
            assert self.cluster.lab is not None
            words = [sys.executable, case.script, self.cluster.lab.name, transport]
            return Command([*words, *case.arguments], case.environment)
        return self._mpi(case, library, transport) if library else self._pair(case, transport)

    def _mpi(self, case: Case, library: str, transport: str) -> Command:
        """What `./beowire run` would type. An MPI is asked once what it is, not for each test."""
        key = (library, transport, case.ranks)
        if key not in self._known:
            job = Job(
                program=["sh", str(_HERE / "begin.sh"), str(self.begun)],
                ranks=case.ranks,
                transport="beowire" if transport == "beowire" else "tcp",
                mpi=library,
                # The control goes the same way through the MPI, with another provider under it.
                tcp_stack="ofi" if transport == CONTROL else "native",
            )
            self._known[key] = launch.command(job, self.cluster, self.directory)
        known = self._known[key]
        return Command(
            [*known.arguments, *case.arguments], {**known.environment, **case.environment}
        )

    def _pair(self, case: Case, transport: str) -> Command:
        """A server on the first node and a client on the second."""
        made = self.cluster.lab
        assert made is not None
        first, second = made.node_names()[:2]
        server, client = (
            [
                *("sh", str(made.enter_path(node)), *case.arguments),
                *("-p", _PROVIDERS[transport], "-s", made.address(node)),
            ]
            for node in (first, second)
        )
        return Command(
            ["sh", str(_HERE / "pair.sh"), shlex.join(server), *client, made.address(first)],
            {"FI_PROVIDER_PATH": str(places.provider_dir()), **case.environment},
        )


def all_begun(bench: Bench, case: Case, library: str) -> bool:
    """Whether the launcher has started every rank."""
    return not library or len(list(bench.begun.iterdir())) >= case.ranks
