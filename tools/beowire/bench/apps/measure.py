# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The order of runs: round by round all applications and shapes, each over TCP and over Beowire, in
turn. An application that fails is told and left out from then on; the others go on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from beowire.bench.apps import answers
from beowire.bench.apps.application import Application, Outcome
from beowire.bench.apps.cells import Cell, Key
from beowire.bench.apps.place import Bench, Shape, some_of
from beowire.bench.matrix.stacks import Cores
from beowire.errors import BeowireError
from beowire.run import path
from beowire.run.job import run_captured
from beowire.run.launch import Bind, Job, TcpStack, Transport
from beowire.run.path import JobRecord

RUN_LIMIT_S = 300.0
TRANSPORTS: tuple[Transport, ...] = ("tcp", "beowire")
_MOVED_SHARE = 0.5
"""So much of what Beowire carried between the nodes TCP must have carried at least: collective
calls move more or less by other algorithms."""


@dataclass(frozen=True)
class Run:
    """What one run told."""

    outcome: Outcome
    record: JobRecord


Runner = Callable[[Application, Shape, Transport], Run]
Tell = Callable[[str], None]


@dataclass
class Results:
    """All that was found."""

    cells: dict[Key, Cell] = field(default_factory=dict)
    failed: list[dict[str, str]] = field(default_factory=list)
    """What failed, by `application` and `ranks`, and `why`."""
    commands: dict[str, str] = field(default_factory=dict)
    """By application, shape and transport, as a person would type it."""
    code: int = 0
    """The exit status for what failed."""

    def fail(self, application: Application, shape: Shape, error: BeowireError) -> None:
        self.failed.append(
            {"application": application.name, "ranks": str(shape), "why": error.what}
        )
        self.code = max(self.code, error.code)


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    applications: tuple[Application, ...]
    shapes: tuple[Shape, ...]
    rounds: int
    tcp_stack: TcpStack = "native"
    bind: Bind | None = None
    """None: to cores if each rank has one."""

    @property
    def steps(self) -> int:
        return len(self.applications) * len(self.shapes) * self.rounds * len(TRANSPORTS)


class Runs:
    """Runs applications on a bench."""

    def __init__(self, bench: Bench, plan: Plan, cores: Cores) -> None:
        self.bench = bench
        self.plan = plan
        self.cores = cores

    def job(self, application: Application, shape: Shape, transport: Transport) -> Job:
        paths = self.bench.put(application, shape.ranks)
        return Job(
            application.command(paths),
            shape.ranks,
            transport,
            per_node=shape.per_node,
            bind=self.plan.bind or self._bind(shape),
            tcp_stack=self.plan.tcp_stack,
            environment=application.environment,
            provider_dir=self.bench.provider_dir if transport == "beowire" else "",
            working_dir=paths.directory,
        )

    def _bind(self, shape: Shape) -> Bind:
        on_one = shape.ranks if self.cores.shared else shape.per_node
        return "core" if on_one <= self.cores.count else "none"

    def run(self, application: Application, shape: Shape, transport: Transport) -> Run:
        """One run, whose way is proved as far as it alone can be."""
        return self.run_job(application, shape, self.job(application, shape, transport))

    def run_job(
        self, application: Application, shape: Shape, job: Job, keep_stats: Path | None = None
    ) -> Run:
        where = some_of(self.bench.cluster, shape.nodes)
        record, output = run_captured(job, where, RUN_LIMIT_S, keep_stats)
        if application.report:
            output = self.bench.take(job.working_dir, application.report)
        outcome = application.read(output)
        answers.check_whole(application, outcome)
        path.prove(record, 1 if job.transport == "beowire" else 0)
        return Run(outcome, record)


def check_moved(tcp: JobRecord, beowire: JobRecord) -> None:
    """Fails unless TCP carried about what Beowire did, as they are the same program's."""
    path.prove(tcp, int(_MOVED_SHARE * beowire.payload_bytes))


def sweep(plan: Plan, results: Results, run: Runner, tell: Tell, keep: Callable[[], None]) -> None:
    """All rounds; `keep` is called after each comparison."""
    broken: set[tuple[str, Shape]] = set()
    for number in range(1, plan.rounds + 1):
        for application in plan.applications:
            for shape in plan.shapes:
                what = (application.name, shape)
                if what in broken:
                    for _ in TRANSPORTS:
                        tell(f"{application.name} {shape}: left out, it failed")
                    continue
                try:
                    _compare(plan, results, run, tell, application, shape, number)
                except BeowireError as error:
                    broken.add(what)
                    results.fail(application, shape, error)
                keep()


def _compare(
    plan: Plan,
    results: Results,
    run: Runner,
    tell: Tell,
    application: Application,
    shape: Shape,
    number: int,
) -> None:
    found: dict[Transport, Run] = {}
    for transport in TRANSPORTS:
        tell(f"{application.name} {shape} over {transport}, round {number} of {plan.rounds}")
        found[transport] = run(application, shape, transport)
        name = f"{application.name} {shape} {transport}"
        results.commands[name] = found[transport].record.command
    tcp, beowire = found["tcp"], found["beowire"]
    check_moved(tcp.record, beowire.record)
    answers.check_agree(application, tcp.outcome, beowire.outcome)
    for figure in application.figures:
        key = Key(figure.name, shape)
        cell = results.cells.setdefault(key, Cell(key, application.name, figure.unit))
        cell.add(tcp.outcome.times[figure.name], beowire.outcome.times[figure.name])
