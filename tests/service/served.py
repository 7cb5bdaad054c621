# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""beowired in a node of a test's, actors that run as unprivileged users, and attackers."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import user_actor
from beowire import places
from user_actor import Actor

USER, OTHER, STRANGER = 65534, 65533, 65532
"""Two users who may have endpoints, and one who may not."""
POLICY = f"users = {USER}, {OTHER}\ninterfaces = eth0\n"
PATIENCE_S = 60.0
PROGRAM = "BEOWIRE_TEST_SERVICE"
"""The variable that names another beowired than the build's: one with a defect, or a sanitizer."""
CLIENT = "BEOWIRE_TEST_ACTOR"
"""The same for the actor that clients are."""
ATTACKER = Path(__file__).with_name("attacker.py")
HOOKS = Path(__file__).with_name("hooks.c")


def service_program() -> str:
    """beowired, or what is tested in its place."""
    return os.environ.get(PROGRAM) or str(places.product("service/beowired"))


class Service:
    """A running beowired."""

    def __init__(self, node: str, directory: Path, policy: str, within: Sequence[str] = ()) -> None:
        self.node = node
        self.within = within
        self.directory = directory
        self.policy = directory / "beowired.conf"
        self.socket = directory / "beowired.sock"
        self.log = directory / "log"
        self.log.touch()
        self.policy.write_text(policy)
        self.start()

    def command(self) -> list[str]:
        """What starts it, without the node."""
        return [service_program(), "--policy", str(self.policy), "--socket", str(self.socket)]

    def start(self) -> None:
        """Starts it, and waits until it is ready."""
        since = self.log.stat().st_size
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.node, *self.within, *self.command()],
                stdout=log,
                stderr=log,
            )
        self.await_line("ready at", since)

    def lines(self, since: int = 0) -> list[str]:
        """What it has said; a line that is being written has no end yet."""
        return self.log.read_text()[since:].rpartition("\n")[0].splitlines()

    def await_line(self, word: str, since: int = 0) -> str:
        """The first line with this word in it, now or later."""
        until = time.monotonic() + PATIENCE_S
        while True:
            for line in self.lines(since):
                if word in line:
                    return line
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.02)

    def _told(self, word: str) -> dict[str, int]:
        since = self.log.stat().st_size
        self.process.send_signal(signal.SIGUSR1)
        line = self.await_line(word, since)
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}

    def drops(self) -> dict[str, int]:
        """How many frames of clients the gate has dropped, by reason."""
        return self._told("dropped interface")

    def await_drops(self, reason: str, n: int) -> None:
        """Until so many frames were dropped for this reason; then there are no more."""
        until = time.monotonic() + PATIENCE_S
        while (drops := self.drops())[reason] < n:
            assert time.monotonic() < until, drops
            time.sleep(0.05)
        assert drops[reason] == n

    def counts(self) -> dict[str, int]:
        """Endpoints there, opened, refused and closed."""
        return self._told("counts")

    def await_living(self, n: int) -> None:
        """Until so many clients are there."""
        until = time.monotonic() + PATIENCE_S
        while self.counts()["living"] != n:
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ends it by a signal: its exit status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def open_directory() -> Iterator[Path]:
    """A directory that others may read, and only we write to."""
    directory = Path(tempfile.mkdtemp(prefix="beowired-"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextlib.contextmanager
def served(node: str, policy: str = POLICY, within: Sequence[str] = ()) -> Iterator[Service]:
    """A service, executed by the command `within` if there is one, that is gone afterwards."""
    with open_directory() as directory:
        made = Service(node, directory, policy, within)
        try:
            yield made
        finally:
            if made.process.poll() is None:
                assert made.stop() == 0, made.log.read_text()


def hooked(place: Path, **variables: str) -> list[str]:
    """What executes the service with hooks.c between it and the C library."""
    library = place / "hooks.so"
    words = ["cc", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", str(HOOKS), "-o", str(library)]
    subprocess.run(words, check=True)
    return ["env", f"LD_PRELOAD={library}", *(f"{key}={value}" for key, value in variables.items())]


def as_user(user: int) -> list[str]:
    """What executes a command as this user, without any privilege."""
    number = str(user)
    return ["setpriv", "--reuid", number, "--regid", number, "--clear-groups"]


@contextlib.contextmanager
def client(
    service: Service,
    user: int = USER,
    node: str | None = None,
    within: Sequence[str] = (),
    **variables: str,
) -> Iterator[Actor]:
    """An actor that runs as a user without privileges, next to the service."""
    program = service.directory / "actor"
    if not program.exists():  # users may not look into the directory of the build
        shutil.copy(os.environ.get(CLIENT) or places.product("tests/user/actor"), program)
        program.chmod(0o755)
    made = user_actor.Actor(
        node or service.node,
        f"user{user}",
        words=[*as_user(user), *within, str(program)],
        **{
            "BEOWIRE_LINKS": "packet",
            "BEOWIRE_SERVICE": str(service.socket),
            **variables,
        },
    )
    try:
        yield made
    finally:
        made.remove()


def _attacker(service: Service, code: str, words: Sequence[str], user: int) -> list[str]:
    """The command that executes Python as a user, after attacker.py."""
    script = ATTACKER.read_text() + code
    return [*as_user(user), "/usr/bin/python3", "-c", script, str(service.socket), *words]


def attack(
    service: Service, code: str, *words: str, user: int = USER, within: Sequence[str] = ()
) -> Any:
    """Executes Python as a user on the service's node, after attacker.py, and with `words` as
    sys.argv[2:]: what it gave to told()."""
    command = _attacker(service, code, words, user)
    where = ["ip", "netns", "exec", service.node]
    split = len(as_user(user))
    done = subprocess.run(
        [*where, *command[:split], *within, *command[split:]],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd="/",
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr + service.log.read_text()
    return json.loads(done.stdout)


class Attacker:
    """A running attacker, which prints results and reads a line wherever it is to wait."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def hear(self) -> Any:
        """Its next result."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return json.loads(line)

    def go_on(self) -> None:
        """Lets it go on."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@contextlib.contextmanager
def attacking(
    service: Service, code: str, user: int = USER, words: Sequence[str] = ()
) -> Iterator[Attacker]:
    """An attacker that runs beside the test, with `words` as sys.argv[2:], and is gone
    afterwards."""
    with subprocess.Popen(
        ["ip", "netns", "exec", service.node, *_attacker(service, code, words, user)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    ) as process:
        try:
            yield Attacker(process)
        finally:
            process.kill()
