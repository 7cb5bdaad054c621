# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where applications run: on the nodes of a lab, which is made for it or given, or on real hosts,
to which everything is copied that they lack, and removed again."""

import contextlib
import os
import shlex
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from beowire import places, private_dir, signals
from beowire.bench.apps import compiled
from beowire.bench.apps.application import Application, Paths
from beowire.errors import BeowireError
from beowire.lab import up
from beowire.run import remote
from beowire.run.cluster import Cluster, of_lab
from beowire.run.job import check_settings

RANKS_MAX = 256


@dataclass(frozen=True)
class Shape:
    """How many ranks on how many nodes."""

    ranks: int
    nodes: int

    def __str__(self) -> str:
        return f"{self.ranks}x{self.nodes}"

    @property
    def per_node(self) -> int:
        return -(-self.ranks // self.nodes)


def read_shapes(text: str) -> tuple[Shape, ...]:
    """2,4 are so many ranks on two nodes, 4x4 four ranks on four nodes."""
    shapes = []
    for each in text.split(","):
        ranks, _, nodes = each.strip().partition("x")
        try:
            shape = Shape(int(ranks), int(nodes or 2))
        except ValueError:
            shape = Shape(0, 0)
        if not 2 <= shape.nodes <= shape.ranks <= RANKS_MAX:
            raise BeowireError(
                f"--ranks {text}?", "Give ranks, or ranks x nodes, two nodes at least: 2,4,4x4."
            )
        shapes.append(shape)
    return tuple(dict.fromkeys(shapes))


@contextlib.contextmanager
def of_lab_made(nodes: int, mtu_bytes: int) -> Iterator[Cluster]:
    """A lab for this command alone."""
    name = f"apps-{os.getpid()}"
    with up.termination_raises():
        up.up(name, nodes, mtu_bytes)
        try:
            where = of_lab(name)
            check_settings(where)
            yield where
        finally:
            up.down(name)


def some_of(cluster: Cluster, nodes: int) -> Cluster:
    """The first so many nodes."""
    if len(cluster.hosts) < nodes:
        raise BeowireError(
            f"There are {len(cluster.hosts)} nodes, not {nodes}.", "Name more, or other --ranks."
        )
    return replace(cluster, hosts=cluster.hosts[:nodes])


class Bench:
    """A directory on the nodes, in which applications find their files."""

    def __init__(self, cluster: Cluster, directory: str) -> None:
        self.cluster = cluster
        self.directory = directory
        self._paths: dict[tuple[str, int], Paths] = {}

    @property
    def is_copied(self) -> bool:
        """The nodes do not see this machine's files."""
        return self.cluster.lab is None

    @property
    def provider_dir(self) -> str:
        """Where libbeowire-fi.so lies on the nodes; empty: in this build."""
        return self.directory if self.is_copied else ""

    def put(self, application: Application, ranks: int) -> Paths:
        """Makes a directory for the application, with what it needs, for so many ranks; once."""
        known = self._paths.get((application.name, ranks))
        if known is not None:
            return known
        directory = f"{self.directory}/{application.name}-{ranks}"
        files: dict[str, Path | str] = dict(application.files(ranks))
        own = _own_program(application)
        if self.is_copied and own is not None:
            files[own.name] = own
        self._write(directory, files)
        program = str(own or application.program)
        if self.is_copied and own is not None:
            program = f"{directory}/{own.name}"
        self._paths[application.name, ranks] = Paths(directory, program)
        return self._paths[application.name, ranks]

    def put_ledger(self) -> str:
        """Where the preloaded library lies on the nodes."""
        library = compiled.ledger()
        if not self.is_copied:
            return str(library)
        self._write(self.directory, {"ledger.so": library})
        return f"{self.directory}/ledger.so"

    def take(self, directory: str, name: str) -> str:
        """The text of a file that the first rank wrote; the next run begins a new one."""
        if self.is_copied:
            path = shlex.quote(f"{directory}/{name}")
            script = f"cat {path} && rm {path}"
            return remote.execute(self.cluster, self.cluster.hosts[0], script).decode()
        file = Path(directory) / name
        try:
            text = file.read_text()
        except OSError as error:
            raise BeowireError(f"A run wrote no {name}: {error.strerror}.") from error
        file.unlink()
        return text

    def _write(self, directory: str, files: dict[str, Path | str]) -> None:
        if self.is_copied:
            name = shlex.quote(directory)
            packed = remote.packed(files)
            unpack = f"mkdir -p {name} && tar -C {name} -xf -"
            remote.execute_everywhere(self.cluster, unpack, packed)
            return
        Path(directory).mkdir(exist_ok=True)
        for name, content in files.items():
            target = Path(directory) / name
            if isinstance(content, Path):
                shutil.copyfile(content, target)
            else:
                target.write_text(content)


def _own_program(application: Application) -> Path | None:
    """The program, where it is none of the distribution's."""
    if application.source is not None:
        return compiled.program(application.source)
    return places.example(application.example) if application.example else None


@contextlib.contextmanager
def bench(cluster: Cluster) -> Iterator[Bench]:
    """The directory, while it is needed."""
    if cluster.lab is not None:
        with tempfile.TemporaryDirectory(prefix="beowire-apps-") as directory:
            yield Bench(cluster, directory)
        return
    directory = f"/tmp/beowire-apps-{uuid.uuid4()}"
    files: dict[str, Path | str] = {each.name: each for each in places.provider_files()}
    name = shlex.quote(directory)
    try:
        unpack = f"{private_dir.make_script(name)} && tar -C {name} -xf -"
        remote.execute_everywhere(cluster, unpack, remote.packed(files))
        yield Bench(cluster, directory)
    finally:
        with signals.uninterrupted():
            remote.execute_everywhere(cluster, f"rm -rf {name}")
