# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the demonstration's programs lie and work: in this checkout and a temporary directory for
a lab, in a directory copied to the hosts, and removed again, for real ones."""

import contextlib
import shlex
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from beowire import places, private_dir, signals
from beowire.demo.programs import HPCC_INPUT, HPCC_OUTPUT, Program, input_of_hpcc
from beowire.errors import BeowireError
from beowire.run import remote
from beowire.run.cluster import Cluster
from beowire.run.launch import Job, Transport


@dataclass(frozen=True)
class LabPlace:
    """The nodes see this machine's files."""

    cluster: Cluster
    directory: Path

    def job(self, program: Program, transport: Transport) -> Job:
        executable = (
            str(places.example(program.executable))
            if program.is_example
            else places.program(program.executable, program.executable)
        )
        arguments = [executable, *program.arguments]
        return Job(
            arguments, program.ranks, transport, bind="core", working_dir=str(self.directory)
        )

    def take_report(self) -> str:
        """hpcc's report of the last run, removed so that the next run begins a new one."""
        path = self.directory / HPCC_OUTPUT
        text = path.read_text()
        path.unlink()
        return text


@dataclass(frozen=True)
class HostsPlace:
    """Every host has a copy of what is needed, at the same path."""

    cluster: Cluster
    directory: str

    def job(self, program: Program, transport: Transport) -> Job:
        executable = (
            f"{self.directory}/{program.executable}" if program.is_example else program.executable
        )
        return Job(
            [executable, *program.arguments],
            program.ranks,
            transport,
            bind="core",
            provider_dir=self.directory,
            working_dir=self.directory,
        )

    def take_report(self) -> str:
        path = shlex.quote(f"{self.directory}/{HPCC_OUTPUT}")
        script = f"cat {path} && rm {path}"
        return remote.execute(self.cluster, self.cluster.hosts[0], script).decode()


Place = LabPlace | HostsPlace


@contextlib.contextmanager
def on_lab(cluster: Cluster, ranks: int) -> Iterator[LabPlace]:
    with tempfile.TemporaryDirectory(prefix="beowire-demo-") as directory:
        (Path(directory) / HPCC_INPUT).write_text(input_of_hpcc(ranks))
        yield LabPlace(cluster, Path(directory))


@contextlib.contextmanager
def on_hosts(cluster: Cluster, ranks: int) -> Iterator[HostsPlace]:
    """Copies the provider, the programs and hpcc's input to every host; removes them at the end."""
    check_hosts(cluster)
    directory = f"/tmp/beowire-demo-{uuid.uuid4()}"
    files: dict[str, Path | str] = {HPCC_INPUT: input_of_hpcc(ranks)}
    files |= {each.name: each for each in places.provider_files()}
    files |= {name: places.example(name) for name in ("pi", "tridiagonal", "pingpong")}
    name = shlex.quote(directory)
    try:
        unpack = f"{private_dir.make_script(name)} && tar -C {name} -xf -"
        remote.execute_everywhere(cluster, unpack, remote.packed(files))
        yield HostsPlace(cluster, directory)
    finally:
        with signals.uninterrupted():
            remote.execute_everywhere(cluster, f"rm -rf {name}")


def check_hosts(cluster: Cluster) -> None:
    """Every host must be reachable and have what the programs need."""
    script = (
        "for each in mpirun.openmpi orted hpcc; do command -v $each >/dev/null || echo $each; done"
    )
    for host, told in remote.execute_everywhere(cluster, script).items():
        missing = told.decode().split()
        if missing:
            raise BeowireError(
                f"{host} lacks {', '.join(missing)}.",
                f"Install it there: apt-get install openmpi-bin libfabric1 hpcc   (on {host})",
            )
