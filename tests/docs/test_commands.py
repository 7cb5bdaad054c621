# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The commands of README.md and of the tutorial work: each is run here, in the tutorial's order, or
elsewhere.toml says which test runs it, or that it needs other machines."""

import contextlib
import re
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import beowire_cli
import pytest
from beowire import places
from beowire.lab import lab
from beowire.status import boards
from commands import Command, commands
from own_shm import own_shared_memory
from shell import Shell

ROOT = Path(__file__).resolve().parents[2]
README, TUTORIAL = ROOT / "README.md", ROOT / "docs" / "tutorial.md"
ELSEWHERE = tomllib.loads(Path(__file__).with_name("elsewhere.toml").read_text())
RUN = {each["command"]: each for each in ELSEWHERE["run"]}
NEEDS = {each["command"] for each in ELSEWHERE["needs"]}
MACHINES = "needs other machines"
PATIENCE_S = 120
UNDO_FILES = Path("/var/lib/beowire/doctor")
LABS = ("try", "served")
"""The tutorial's labs. The test's have names that nobody else on this machine uses."""
SHOWN = {
    "./beowire --version": "beowire 0.1.0",
    "./beowire info": "packet",
    "./beowire lab exec try node1 -- hostname": "node1",
    "./beowire lab status try": "namespace",
    "./beowire doctor --why tcp.sack": "RFC 2018",
    "./beowire bench compare": "even|better|worse",
    "./beowire sockets --lab try --node node1": r": sent .*(Beowire|TCP)",
    "./beowire status --lab try": r"node1(?s:.*)node2",
    "./beowire status --job": "[Rr]ank|job",
    "./beowire key check": "node2|same",
}
"""What the command that begins so prints, at least, as a regular expression."""
PROVED = "proved: payload over"


def test_a_command_is_found_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```\nno command\n```\n\n- a list\n\n  ```sh\n  one   # comment\n  two \\\n    more\n"
        "\n  three '# no comment'\n  ```\n\n<!-- not run: why -->\n```sh\nfour\n```\n"
    )
    assert commands(page) == [
        Command("one", 8),
        Command("two more", 10),
        Command("three '# no comment'", 12),
        Command("four", 17, "why"),
    ]


@pytest.mark.parametrize("page", [README, TUTORIAL], ids=lambda page: page.name)
def test_what_is_not_run_is_listed(page: Path) -> None:
    """With a mark if it needs other machines, and these are no more than are listed."""
    for each in commands(page):
        assert each.not_run in ("", MACHINES), each
        assert (each.text in NEEDS) == bool(each.not_run), each
    if page == README:
        assert not [each for each in commands(page) if each.text not in RUN]


def test_the_list_has_nothing_that_nobody_needs() -> None:
    there = {each.text for page in (README, TUTORIAL) for each in commands(page)}
    assert {*RUN, *NEEDS} <= there
    assert len(NEEDS) == 10


@pytest.mark.parametrize("command", RUN)
def test_what_another_test_runs_is_run_there(command: str) -> None:
    assert RUN[command]["by"] in (ROOT / RUN[command]["test"]).read_text()


@pytest.fixture
def names() -> Iterator[dict[str, str]]:
    """Of the tutorial's labs in this run; they are gone afterwards."""
    fresh = {name: beowire_cli.fresh_name() for name in LABS}
    yield fresh
    for name in fresh.values():
        beowire_cli.remove(name)


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where the reader is: at the root of a checkout, but what is written stays apart. Other users
    may enter it, as a rank that runs as another one must."""
    with tempfile.TemporaryDirectory(prefix="beowire-tutorial-") as made:
        place = Path(made)
        place.chmod(0o755)
        (place / "beowire").symlink_to(ROOT / "beowire")
        (place / "build").symlink_to(places.build_dir())
        yield place


def await_that(what: Callable[[], bool], told: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end, told
        time.sleep(0.05)


def listens(name: str) -> bool:
    """Whether the server of socket programs has begun to listen on the second node."""
    enter = ["sh", str(lab.load(name).enter_path("node2"))]
    ask = ["ss", "-Hltn", "sport = :5201"]
    return bool(subprocess.run([*enter, *ask], capture_output=True, check=True).stdout)


def both_are_there() -> bool:
    """Whether two endpoints tell of themselves, those of the job in the background."""
    return len(boards.find()) >= 2


@pytest.fixture
def undone() -> Iterator[None]:
    """What the doctor changed is remembered after it was taken back: not so here."""
    known = set(UNDO_FILES.glob("*"))
    yield
    for file in set(UNDO_FILES.glob("*.undone")) - known:
        file.unlink()
    for directory in (UNDO_FILES, UNDO_FILES.parent):
        with contextlib.suppress(OSError):
            directory.rmdir()


@pytest.mark.usefixtures("undone")
@pytest.mark.skipif(
    bool(beowire_cli.NO_NAMESPACES), reason=f"raw frames: {beowire_cli.NO_NAMESPACES}"
)
def test_the_tutorial(names: dict[str, str], directory: Path) -> None:
    before = {
        "./beowire sockets --lab try --node node1": lambda: listens(names["try"]),
        "./beowire status --lab try": both_are_there,
    }
    with own_shared_memory(), Shell(directory, {"BEOWIRE_ROOT": ""}) as shell:
        for each in commands(TUTORIAL):
            if each.text in RUN or each.text in NEEDS:
                continue
            for start, ready in before.items():
                if each.text.startswith(start):
                    await_that(ready, each.text)
            text = re.sub(rf"\b({'|'.join(LABS)})\b", lambda name: names[name[1]], each.text)
            status, said = shell.run(text)
            assert status == 0, f"{TUTORIAL.name}:{each.line}: {text}\n{said}"
            wanted = [shown for start, shown in SHOWN.items() if each.text.startswith(start)]
            if "--prove" in each.text:
                wanted.append(PROVED)
            for shown in wanted:
                assert re.search(shown, said), f"{TUTORIAL.name}:{each.line}: {text}\n{said}"
    for name in names.values():
        assert beowire_cli.traces(name) == []
