#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Build the engine, the link emulator's model, the user host, the kernel host's server, the
libfabric provider or a preload library with each seeded defect of mutants.toml, host.toml,
provider.toml, sockets.toml and replicate.toml; some test must notice each of them.

A defect of the user host or the provider names the program that is expected to notice it. Another
one is tried against the unit tests of its room first and, if it is one of the engine and they let
it pass, against the simulator with fixed seeds. Tests and simulator are compiled once, and for each
mutant the changed file only; programs that load the provider are not even linked again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLES = [
    Path(__file__).with_name(f"{name}.toml")
    for name in ("mutants", "host", "provider", "sockets", "replicate")
]
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", "-fno-strict-aliasing", "-fPIC"]
ROOMS = (
    "engine",
    "emulator",
    "hosts/sim",
    "hosts/user",
    "hosts/kernel",
    "adapters/libfabric",
    "adapters/replicate",
)
INCLUDE = [f"-I{ROOT / room}" for room in ("common", *ROOMS)]
SOCKETS = "adapters/sockets"
"""Whose headers are found beside its sources alone, as others have the same names."""
COMMON = sorted((ROOT / "common").glob("*.c"))
# The engine as tests/engine/meson.build makes a later version of it.
LATER = ["-DBW_VERSION_MAX=3", "-Dbw_reliable=bw_reliable_later"]
# What of the link emulator only computes: meson.build there has the same list.
MODEL_LIST = re.compile(r"emulator_pure_sources = files\(([^)]*)\)")
# What libbeowire and the provider are made of.
USER_LIST = re.compile(r"user_sources = files\(([^)]*)\)")
# What of beowire-server hosts an engine.
SERVER = "hosts/kernel/server"
SERVER_LIST = re.compile(r"server_instance_sources = files\(([^)]*)\)")
SERVER_WRAPPED = ("clock_gettime", "malloc", "calloc", "aligned_alloc", "free")
REPLICATE_LIST = re.compile(r"replicate_sources = files\(([^)]*)\)")
SOCKETS_LIST = re.compile(r"sockets_(?:\w+_)?sources = files\(([^)]*)\)")
SOCKETS_AWAY_LIST = re.compile(r"sockets_away_sources = files\(([^)]*)\)")
SOCKETS_CHOICE_LIST = re.compile(r"sockets_choice_sources = files\(([^)]*)\)")
SOCKETS_CONTROL_LIST = re.compile(r"sockets_control_sources = files\(([^)]*)\)")
SOCKETS_OFFER_LIST = re.compile(r"sockets_offer_sources = files\(([^)]*)\)")
SOCKETS_REGISTRAR_LIST = re.compile(r"sockets_registrar_sources = files\(([^)]*)\)")
SOCKETS_FLOW_LIST = re.compile(r"sockets_flow_sources = files\(([^)]*)\)")
PROVIDER_LIST = re.compile(r"fi_(?:\w+_)?sources = files\(([^)]*)\)")
# The C tests of the user host: a folder, its programs, and what these share.
USER_TESTS = (
    (
        "user",
        (
            "arriving",
            "batch",
            "board",
            "discard",
            "goodbye",
            "home",
            "look",
            "message",
            "names",
            "place",
            "remote",
            "ring",
            "setting",
            "short",
            "stats",
            "wait",
            "watch",
        ),
        ("endpoint",),
    ),
    (
        "user",
        (
            "cores",
            "crowd",
            "env",
            "helper",
            "keeper",
            "kernel_table",
            "key",
            "packet",
            "steer",
            "udp",
            "udp_active",
            "udp_rows",
        ),
        (),
    ),
    ("local", ("local_contact", "local_message", "local_read"), ("couple", "node")),
    ("local", ("local_handshake", "local_hostile", "local_lies"), ("hostile", "node")),
    ("local", ("local_who",), ("node",)),
    ("local", ("local_way", "keyed"), ()),
)
USER_WRAPPED = {
    "setting": ("getauxval",),
    "discard": ("setsockopt", "getsockopt"),
    "local_who": ("bw_who_may",),
    "ring": ("bw_host_receive", "bw_host_receive_row"),
}
"""The functions that a test has in the place of the real ones."""
USER_ENVIRONMENT = {"BEOWIRE_LINKS": "local", "BEOWIRE_UDP_ADDRESS": "127.0.0.1"}
# Those of the provider: linked with its files, with these arguments, and loading it by libfabric.
WRAPS = f"@{ROOT}/tests/libfabric/wraps.txt"
PROVIDER_INSIDE = {
    "lanes": "",
    "match": "",
    "atomic_ops": "",
    "device": WRAPS,
    "kept": WRAPS,
    "early": WRAPS,
    "full": WRAPS,
    "peers": WRAPS,
    "strangers": WRAPS,
}
PROVIDER_LOADED = (
    "bounds",
    "close",
    "getinfo",
    "hostile",
    "memory",
    "messages",
    "objects",
    "plugin",
    "rail",
    "waiting",
)
PROVIDER_SHARED = ("pair", "plugin", "sides", "stranger")
PROVIDER_ENVIRONMENT = {"FI_PROVIDER": "beowire", "BEOWIRE_LINKS": "local"}
# Runs of the simulator: scenarios drawn from seeds, and those that bring about what is rare there.
SIM_RUNS = {
    "simulator": ["--seeds", "1-30", "--jobs", "1"],
    "simulator-killed": ["--seeds", "1-2", "--jobs", "1", "--scenario", "killed"],
    "simulator-starve": ["--seeds", "1-8", "--jobs", "1", "--scenario", "starve"],
    "simulator-leave": ["--seeds", "1-4", "--jobs", "1", "--scenario", "leave"],
}
CHANGED_MOST = 30  # mutants of changed files in a sample
# Who computes CPU_TIMES as long as without a defect, measured beside the same load, never ends. A
# processor that others use as well makes a program take up to twice as long.
CPU_TIMES = 3
CPU_LEAST_S = 5
UNKNOWN_S = 60  # without a defect
WALL_S = 1200
SLEEP_S = 60  # of wall time: a program that may sleep for ever takes a second when it does not


@dataclass(frozen=True)
class Mutant:
    """A defect: `old`, which occurs once in `file`, becomes `new`.

    With a `function`, it occurs once in there, however it is wrapped and indented.
    """

    name: str
    file: str
    says: str
    old: str
    new: str
    function: str = ""
    test: str = ""
    """The program that must notice it; "": any."""
    sleeps: bool = False
    """It may show as a sleep without end."""
    through: str = ""
    """The source file that includes `file`, a header of its own folder."""

    @property
    def room(self) -> str:
        """Whose tests it is for: what rooms share is tried with the user host."""
        if self.file.startswith("common/"):
            return "hosts/user"
        return next(room for room in (*ROOMS, SOCKETS) if self.file.startswith(f"{room}/"))

    def text(self) -> str:
        """The changed file. ValueError if the table no longer fits the sources."""
        try:
            source = (ROOT / self.file).read_text()
        except FileNotFoundError:
            raise ValueError(f"{self.file} is gone") from None
        if self.function:
            return self._text_of_function(source)
        times = source.count(self.old)
        if times != 1:
            raise ValueError(f"{self.file} contains the text to be changed {times} times, not once")
        return source.replace(self.old, self.new)

    def fits(self) -> bool:
        """Whether what is to be changed is there."""
        try:
            self.text()
        except ValueError:
            return False
        return True

    def _text_of_function(self, source: str) -> str:
        start = rf"^(?![ \t#/*])[^;\n]*\b{self.function}\([^;{{]*?\)\n\{{.*?^\}}"
        body = re.search(start, source, re.MULTILINE | re.DOTALL)
        if body is None:
            raise ValueError(f"{self.file} has no function {self.function}() any more")
        words = r"\s+".join(re.escape(word) for word in self.old.split())
        changed, times = re.subn(words, lambda _: self.new, body[0])
        if times != 1:
            raise ValueError(f"{self.function}() contains the text {times} times, not once")
        return source[: body.start()] + changed + source[body.end() :]


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant. `caught_by` is empty when nothing noticed it."""

    name: str
    caught_by: str
    problem: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Was the defect noticed?"""
        return bool(self.caught_by)


class CompileError(Exception):
    """The compiler refused a file; the text is its complaint."""


class StuckError(Exception):
    """A program neither ended nor computed: no verdict."""


def load(paths: Sequence[Path]) -> list[Mutant]:
    """Read the tables; names must be distinct."""
    rows = [row for path in paths for row in tomllib.loads(path.read_text())["mutant"]]
    mutants = [Mutant(**row) for row in rows]
    names = [mutant.name for mutant in mutants]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f'two mutants are called "{name}"; rename one')
    return mutants


def cc(arguments: Sequence[str]) -> None:
    """Run the compiler."""
    compiler = os.environ.get("CC", "cc")
    done = subprocess.run([compiler, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(done.stderr.strip())


@dataclass
class Program:
    """A program that may notice a defect."""

    own: list[Path]
    """What is linked with the room's objects; empty: it loads them."""
    libraries: Sequence[str] = ()
    arguments: Sequence[str] = ()
    ready: Path | None = None
    """The program itself, if it loads the room's objects."""
    of: Collection[str] = ()
    """The only files of the room that it is linked with; empty: all."""
    took_s: float = 0
    """Seconds of a processor that the program took without a defect; 0: not known yet."""

    def limit_s(self) -> int:
        """Seconds of computing after which it does not end, whatever else runs."""
        return max(CPU_LEAST_S, math.ceil(CPU_TIMES * self.took_s)) if self.took_s else UNKNOWN_S


@dataclass(frozen=True)
class House:
    """The objects that mutants are mixed with, and the programs made of them."""

    objects: dict[str, Path]
    programs: dict[str, Program]
    plugin: Sequence[Path] = ()
    """What else belongs to the shared object that is loaded."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    plugin_name: str = "libbeowire-fi.so"


class Workshop:
    """Objects of the unchanged rooms, their unit tests and the simulator: what these mutants need
    of them, and no other program of a room whose mutants all name theirs."""

    def __init__(self, place: Path, jobs: int, mutants: Sequence[Mutant]) -> None:
        self.place = place
        self._named: dict[str, set[str]] = {}
        for mutant in mutants:
            self._named.setdefault(mutant.room, set()).add(mutant.test)
        rooms = set(self._named)
        engine = self._engine(jobs)
        self.houses = {"engine": engine}
        if "emulator" in rooms:
            self.houses["emulator"] = self._emulator(jobs)
        if rooms & {"hosts/user", "adapters/libfabric"}:
            user = self.houses["hosts/user"] = self._user(jobs, engine)
        if "hosts/kernel" in rooms:
            self.houses["hosts/kernel"] = self._server(jobs, engine)
        if "adapters/libfabric" in rooms:
            below = [*engine.objects.values(), *user.objects.values()]
            self.houses["adapters/libfabric"] = self._provider(jobs, below)
        if "adapters/replicate" in rooms:
            self.houses["adapters/replicate"] = self._replicate(jobs)
        if SOCKETS in rooms:
            self.houses[SOCKETS] = self._sockets(jobs, engine)

    def _wanted(self, room: str, program: str) -> bool:
        """Whether the program is to notice a mutant of the room, which names it, or names none."""
        return not self._named.get(room, set()).isdisjoint(("", program))

    def _engine(self, jobs: int) -> House:
        engine = self._compile("engine", sorted((ROOT / "engine").rglob("*.c")), jobs)
        if "engine" not in self._named:
            return House(engine, {})
        tests = self._compile("tests", sorted((ROOT / "tests" / "engine").glob("*.c")), jobs)
        later = self.place / "libengine-later.so"
        sources = [str(ROOT / name) for name in engine]
        only = f"-Wl,--version-script={ROOT / 'tests' / 'engine' / 'later.map'}"
        cc([*FLAGS, *LATER, *INCLUDE, "-shared", only, "-o", str(later), *sources])
        keyed = self._compile(
            "keyed", [ROOT / "common" / name for name in ("keyed.c", "sealing.c")], jobs
        )
        sim_sources = sorted((ROOT / "hosts" / "sim").glob("*.c"))
        sim = self._compile("sim", [*sim_sources, *COMMON], jobs)
        programs = {
            "unit": Program(
                [*tests.values(), *keyed.values()],
                [str(later), f"-Wl,-rpath,{self.place}", "-lcmocka", "-lsodium"],
                ["--first"],
            ),
        }
        if "hosts/sim/main.c" in sim:
            for run_name, arguments in SIM_RUNS.items():
                programs[run_name] = Program(list(sim.values()), ["-lsodium"], arguments)
        return House(engine, programs)

    def _emulator(self, jobs: int) -> House:
        model = self._compile("emulator", listed("emulator", MODEL_LIST), jobs)
        tests = self._compile(
            "tests-emulator", sorted((ROOT / "tests" / "emulator").glob("*.c")), jobs
        )
        return House(model, {"unit": Program(list(tests.values()), ["-lcmocka", "-lm"])})

    def _replicate(self, jobs: int) -> House:
        own = self._compile("replicate", listed("adapters/replicate", REPLICATE_LIST), jobs)
        tests = self._compile(
            "tests-replicate", [ROOT / "tests" / "replicate" / "test_copies.c"], jobs
        )
        return House(own, {"test_copies": Program(list(tests.values()), ["-lcmocka"])})

    def _user(self, jobs: int, engine: House) -> House:
        user = self._compile("user", [*listed("hosts/user", USER_LIST), *COMMON], jobs)
        programs = {}
        for folder, all_tests, shared in USER_TESTS:
            tests = [name for name in all_tests if self._wanted("hosts/user", f"test_{name}")]
            if not tests:
                continue
            files = [ROOT / "tests" / folder / f"{name}.c" for name in shared]
            files += [ROOT / "tests" / folder / f"test_{name}.c" for name in tests]
            place = f"tests-{folder}-{tests[0]}"
            made = self._compile(place, files, jobs, ROOT / "hosts" / "user")
            common = [*engine.objects.values()]
            common += [made[f"tests/{folder}/{name}.c"] for name in shared]
            for name in tests:
                own = [made[f"tests/{folder}/test_{name}.c"], *common]
                more = [f"-Wl,--wrap={each}" for each in USER_WRAPPED.get(name, ())]
                libraries = [*more, "-lcmocka", "-lsodium", "-lpthread"]
                programs[f"test_{name}"] = Program(own, libraries)
        return House(user, programs, environment=USER_ENVIRONMENT)

    def _server(self, jobs: int, engine: House) -> House:
        """What is tried of the kernel host in user space."""
        own = self._compile("server", listed(SERVER, SERVER_LIST), jobs)
        common = self._compile("server-common", COMMON, jobs)
        programs = {}
        for name, shared, wrapped in (("instance", ["callers"], SERVER_WRAPPED), ("peers", [], ())):
            files = [ROOT / "tests/kernel/server" / f"{one}.c" for one in (f"test_{name}", *shared)]
            tests = self._compile(f"tests-server-{name}", files, jobs, ROOT / SERVER)
            parts = [*tests.values(), *engine.objects.values(), *common.values()]
            more = [f"-Wl,--wrap={each}" for each in wrapped]
            of = () if wrapped else (f"{SERVER}/peers.c",)
            libraries = [*more, "-lcmocka", "-lsodium", "-lpthread"]
            programs[f"test_{name}"] = Program(parts, libraries, of=of)
        return House(own, programs)

    def _provider(self, jobs: int, below: Sequence[Path]) -> House:
        room = "tests/libfabric"
        own = self._compile("provider", listed("adapters/libfabric", PROVIDER_LIST), jobs)
        wanted = [
            name
            for name in (*PROVIDER_INSIDE, *PROVIDER_LOADED)
            if self._wanted("adapters/libfabric", f"test_{name}")
        ]
        parts_of = [f"test_{name}" for name in wanted]
        if not set(wanted).isdisjoint(PROVIDER_LOADED):
            parts_of += PROVIDER_SHARED
        if any(PROVIDER_INSIDE.get(name) for name in wanted):
            parts_of += ["pair", "inside"]
        files = [ROOT / room / f"{name}.c" for name in dict.fromkeys(parts_of)]
        tests = self._compile("tests-libfabric", files, jobs)
        libraries = ["-lcmocka", "-lfabric", "-lsodium", "-lpthread", "-lm"]
        programs = {}
        for name, more in PROVIDER_INSIDE.items():
            if name not in wanted:
                continue
            parts = [tests[f"{room}/test_{name}.c"], *below]
            if more:
                parts += [tests[f"{room}/pair.c"], tests[f"{room}/inside.c"]]
            programs[f"test_{name}"] = Program(parts, [*more.split(), *libraries])
        for name in PROVIDER_LOADED:
            if name not in wanted:
                continue
            ready = self.place / f"test_{name}"
            own_tests = (f"test_{name}", *PROVIDER_SHARED)
            parts = [*(tests[f"{room}/{each}.c"] for each in own_tests), *below]
            cc(["-o", str(ready), *map(str, parts), *libraries])
            programs[f"test_{name}"] = Program([], ready=ready)
        return House(own, programs, below, PROVIDER_ENVIRONMENT)

    def _sockets(self, jobs: int, engine: House) -> House:
        programs = {}
        files: set[Path] = set()
        for name, lists in (
            ("away", [SOCKETS_AWAY_LIST]),
            ("choice", [SOCKETS_CHOICE_LIST]),
            ("flow", [SOCKETS_FLOW_LIST]),
            ("offer", [SOCKETS_OFFER_LIST]),
            ("registrar", [SOCKETS_REGISTRAR_LIST]),
            ("control", [SOCKETS_CONTROL_LIST, SOCKETS_CHOICE_LIST]),
            ("letters", [SOCKETS_CONTROL_LIST, SOCKETS_CHOICE_LIST]),
        ):
            if not self._wanted(SOCKETS, f"test_{name}"):
                continue
            shared = ["control_stage"] if SOCKETS_CONTROL_LIST in lists else []
            tests = [ROOT / "tests/sockets" / f"{one}.c" for one in (f"test_{name}", *shared)]
            unit = self._compile(f"tests-{name}", tests, jobs, ROOT / SOCKETS)
            sources = {each for one in lists for each in listed(SOCKETS, one)}
            files.update(sources)
            of = {str(each.relative_to(ROOT)) for each in sources}
            libraries = ["-lcmocka", "-ldl", "-pthread"]
            programs[f"test_{name}"] = Program(list(unit.values()), libraries, of=of)
        plugin = "libbeowire-sockets.so"
        given: dict[str, tuple[str, list[str]]] = {
            "differ": ("differ*.c", ["both", "7", "300"]),
            "quiet": ("quiet.c", []),
            "asleep": ("asleep.c", []),
            "asleep alone": ("asleep.c", ["alone"]),
        }
        loaded = [name for name in given if self._wanted(SOCKETS, name)]
        if not loaded:
            own = self._compile("sockets", sorted(files), jobs)
            return House(own, programs, environment=USER_ENVIRONMENT)
        own = self._compile("sockets", listed(SOCKETS, SOCKETS_LIST), jobs)
        keyed = [ROOT / "common" / name for name in ("keyed.c", "sealing.c")]
        libbeowire = {*listed("hosts/user", USER_LIST), *COMMON, *keyed}
        calls = ["-include", str(ROOT / SOCKETS / "own.h")]
        user = self._compile("sockets-user", sorted(libbeowire), jobs, more=calls)
        for name in loaded:
            pattern, words = given[name]
            tests = sorted((ROOT / "tests/sockets").glob(pattern))
            ready = self.place / name
            made = self._compile(f"tests-{name}", tests, jobs)
            cc(["-o", str(ready), *map(str, made.values())])
            arguments = [*words, f"FOLDER/{plugin}"]
            programs[name] = Program([], arguments=arguments, ready=ready)
        below = [*engine.objects.values(), *user.values()]
        return House(own, programs, below, USER_ENVIRONMENT, plugin_name=plugin)

    def _compile(
        self,
        name: str,
        sources: Sequence[Path],
        jobs: int,
        home: Path | None = None,
        more: Sequence[str] = (),
    ) -> dict[str, Path]:
        folder = self.place / name
        folder.mkdir()
        names = [str(source.relative_to(ROOT)) for source in sources]
        objects = {name: folder / f"{name.replace('/', '-')}.o" for name in names}
        with ThreadPoolExecutor(jobs) as pool:
            list(
                pool.map(
                    lambda name: self.compile(ROOT / name, objects[name], home, more),
                    names,
                )
            )
        return objects

    @staticmethod
    def compile(
        source: Path, target: Path, home: Path | None = None, more: Sequence[str] = ()
    ) -> None:
        """Compile one file. Its includes are looked for in its folder first, then at home."""
        near = [f"-iquote{home}"] if home else []
        cc([*FLAGS, *more, *near, *INCLUDE, "-c", str(source), "-o", str(target)])

    def try_all(
        self,
        house: House,
        folder: Path,
        changed: dict[str, Path],
        only: str = "",
        sleeps: bool = False,
    ) -> tuple[str, str]:
        """Link and run program after program: the first complaint, and who made it ("" if none)."""
        objects = list((house.objects | changed).values())
        if only and only not in house.programs:
            raise ValueError(f"there is no program {only}")
        plugin = folder / house.plugin_name
        for name, program in house.programs.items():
            if only not in ("", name):
                continue
            if program.ready is None:
                made = folder / name
                parts = [
                    each
                    for file, each in (house.objects | changed).items()
                    if not program.of or file in program.of
                ]
                cc(
                    [
                        "-o",
                        str(made),
                        *map(str, [*program.own, *parts]),
                        *program.libraries,
                    ]
                )
            elif not plugin.exists():
                cc(
                    [
                        "-shared",
                        "-Wl,-Bsymbolic",
                        "-o",
                        str(plugin),
                        *map(str, [*objects, *house.plugin]),
                        "-lsodium",
                        "-lpthread",
                        "-lm",
                        "-ldl",
                    ]
                )
            given = [each.replace("FOLDER", str(folder)) for each in program.arguments]
            call = [str(program.ready or made), *given]
            environment = {
                "MALLOC_PERTURB_": "85",  # what is not set is not right by chance
                **os.environ,
                **house.environment,
                "FI_PROVIDER_PATH": str(folder),
            }
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            complaint = run(call, environment, program.limit_s(), sleeps)
            if complaint:
                return name, complaint
            if not changed:
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                program.took_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return "", ""


def listed(room: str, pattern: re.Pattern[str]) -> list[Path]:
    """The sources that meson.build of a room has in such lists."""
    lists = pattern.findall((ROOT / room / "meson.build").read_text())
    if not lists:
        raise CompileError(f"{room}/meson.build has no list any more that fits {pattern.pattern}")
    return [ROOT / room / name for each in lists for name in re.findall(r"'([^']+)'", each)]


def run(call: Sequence[str], environment: Mapping[str, str], cpu_s: int, sleeps: bool) -> str:
    """What the program complains of, "" if it is content."""
    try:
        done = subprocess.run(
            ["sh", "-c", f'ulimit -t {cpu_s}; exec "$@"', "sh", *call],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SLEEP_S if sleeps else WALL_S,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        if sleeps:
            return "it sleeps for ever"
        raise StuckError(f"{Path(call[0]).name} waits for something, without computing") from None
    if not done.returncode:
        return ""
    if done.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        return f"no end within {cpu_s} s of computing"
    output = done.stdout + done.stderr
    failed = re.search(r"\[  (?:FAILED|ERROR) +\] (\w+__\w+)", output)
    if failed:
        return failed[1]
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[0].strip() if lines else f"exit status {done.returncode}"


def examine(workshop: Workshop, mutant: Mutant) -> Verdict:
    """Build and try one mutant."""
    begin = time.monotonic()
    folder = workshop.place / f"mutant-{mutant.name}"
    folder.mkdir()
    caught_by = problem = ""
    try:
        source = folder / Path(mutant.file).name
        source.write_text(mutant.text())
        if mutant.through:
            source = Path(shutil.copy(ROOT / mutant.through, folder))
        target = folder / "mutated.o"
        workshop.compile(source, target, (ROOT / mutant.file).parent)
        house = workshop.houses[mutant.room]
        who, what = workshop.try_all(
            house, folder, {mutant.through or mutant.file: target}, mutant.test, mutant.sleeps
        )
        caught_by = f"{who}: {what}" if who else ""
        problem = "" if who else "nothing noticed it"
    except (ValueError, CompileError, StuckError) as error:
        problem = str(error)
    finally:
        shutil.rmtree(folder)
    return Verdict(mutant.name, caught_by, problem, round(time.monotonic() - begin, 2))


def check_unchanged(workshop: Workshop, mutants: Sequence[Mutant]) -> None:
    """What is to notice a defect must pass without it, or nothing below means anything; how long it
    computes says when a defect makes it compute for ever."""
    for room, test in sorted({(mutant.room, mutant.test) for mutant in mutants}):
        folder = workshop.place / f"unchanged-{room.replace('/', '-')}"
        folder.mkdir(exist_ok=True)
        who, what = workshop.try_all(workshop.houses[room], folder, {}, test)
        if who:
            sys.exit(f"the unchanged {room} already fails ({who}: {what}); fix that first")


def git(*words: str) -> str:
    """What git says; nothing where it fails, or there is none."""
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *words],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return "" if done.returncode else done.stdout


def changed_now() -> set[str]:
    """The files that differ from where this branch left the one that it is to go to; where it has
    no commits of its own, from the commit before. What is not committed counts, too."""
    head = git("rev-parse", "-q", "--verify", "HEAD^{commit}").strip()
    if not head:
        print("git tells no history here: no files count as changed", file=sys.stderr)
        return set()
    for upstream in ("@{upstream}", "origin/HEAD"):
        base = git("merge-base", "HEAD", upstream).strip()
        if base and base != head:
            return _names("diff", "--name-only", base)
    if git("rev-parse", "-q", "--verify", "HEAD~1^{commit}"):
        return _names("diff", "--name-only", "HEAD~1")
    print(
        "the commit before this one is not here (a shallow clone?): "
        "all files of this commit count as changed",
        file=sys.stderr,
    )
    return _names("show", "--format=", "--name-only", "HEAD") | _names(
        "diff", "--name-only", "HEAD"
    )


def _names(*words: str) -> set[str]:
    return set(git(*words).splitlines())


def sample(
    mutants: Sequence[Mutant], every: int, changed: set[str], turn: int, most: int = CHANGED_MOST
) -> list[Mutant]:
    """Those of changed files, `most` of them, and every so many of the others; `turn` says which.
    Those that no longer fit the sources are always among them, and fail."""
    near = [mutant for mutant in mutants if mutant.file in changed]
    far = [mutant for mutant in mutants if mutant.file not in changed]
    step = -(-len(near) // most) or 1
    chosen = {mutant.name for mutant in (*near[turn % step :: step], *far[turn % every :: every])}
    chosen |= {mutant.name for mutant in mutants if not mutant.fits()}
    return [mutant for mutant in mutants if mutant.name in chosen]


def sample_now(mutants: Sequence[Mutant], every: int, most: int = CHANGED_MOST) -> list[Mutant]:
    """The sample whose turn it is with this commit, without history on this day."""
    commit = git("rev-parse", "HEAD").strip()
    turn = int(commit, 16) if commit else int(time.time() / 86400)
    return sample(mutants, every, changed_now(), turn, most)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--only", metavar="NAME[,NAME]", help="try these mutants only")
    parser.add_argument("--room", metavar="DIR", help="try those of this room only")
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="try those of the files that changed last, and of the others every Nth, "
        "which differ from commit to commit",
    )
    parser.add_argument("--json", action="store_true", help="print results for machines")
    return parser.parse_args()


def report(mutants: Sequence[Mutant], verdicts: Sequence[Verdict], as_json: bool) -> int:
    """Print everything; the exit status."""
    failed = sum(not verdict.passed for verdict in verdicts)
    if as_json:
        rows = [asdict(verdict) | {"passed": verdict.passed} for verdict in verdicts]
        print(json.dumps({"passed": len(rows) - failed, "failed": failed, "mutants": rows}))
        return 1 if failed else 0
    for mutant, verdict in zip(mutants, verdicts, strict=True):
        if verdict.passed:
            print(f"caught   {mutant.name:32} {verdict.caught_by}")
        else:
            print(f"SURVIVED {mutant.name:32} {mutant.says} ({mutant.file}): {verdict.problem}")
    print(f"{len(verdicts) - failed} passed, {failed} failed", flush=True)
    if failed:  # last, where whoever runs this takes the reason from
        names = [m.name for m, v in zip(mutants, verdicts, strict=True) if not v.passed]
        print(f"survived: {', '.join(names)}", file=sys.stderr)
    return 1 if failed else 0


def main() -> int:
    """Try all mutants, or the one asked for."""
    args = arguments()
    mutants = [m for m in load(TABLES) if not args.only or m.name in args.only.split(",")]
    mutants = [m for m in mutants if args.room in (None, m.room)]
    if not mutants:
        sys.exit("no mutant is called so; their names stand in the tables")
    if args.sample:
        total, mutants = len(mutants), sample_now(mutants, args.sample)
        print(f"{len(mutants)} of {total} mutants are tried", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        try:
            workshop = Workshop(Path(place), args.jobs, mutants)
            check_unchanged(workshop, mutants)
        except (CompileError, StuckError) as error:
            sys.exit(f"the unchanged sources or their tests cannot be built:\n{error}")
        with ThreadPoolExecutor(args.jobs) as pool:
            verdicts = list(pool.map(lambda m: examine(workshop, m), mutants))
    return report(mutants, verdicts, args.json)


if __name__ == "__main__":
    sys.exit(main())
