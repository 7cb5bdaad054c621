# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The manual pages: clean to their formatter, and complete against what they describe.

Options are asked of the command line itself, variables and functions are read from the sources.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from beowire import places

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "man").glob("*.[1-8]"))


def formatted(page: Path) -> str:
    """The page as text; a warning of the formatter is a failure."""
    done = subprocess.run(
        ["man", "--nh", "--warnings", "-E", "UTF-8", "-Tutf8", "-l", str(page)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "200", "GROFF_NO_SGR": "1"},
    )
    assert done.stderr == ""
    return re.sub(r".\x08", "", done.stdout).replace("\N{HYPHEN}", "-")


def page(name: str) -> Path:
    return ROOT / "docs" / "man" / name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_formatter_has_no_complaint(path: Path) -> None:
    text = formatted(path)
    assert "NAME" in text
    assert "SEE ALSO" in text


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_mandoc_has_no_complaint(path: Path) -> None:
    done = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


def test_references_lead_somewhere() -> None:
    ours = {path.name for path in PAGES}
    for path in PAGES:
        for name, number in re.findall(r"^\.Xr (\S*beowire\S*) (\d)", path.read_text(), re.M):
            assert f"{name}.{number}" in ours, path.name


def options() -> Iterator[tuple[tuple[str, ...], list[str], list[str]]]:
    """Every command, the whole one included, by the words that lead to it: its options, and their
    negations."""
    from beowire.cli import command_line

    def walk(
        command: Any, words: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, ...], list[str], list[str]]]:
        inner = getattr(command, "commands", None)
        if not words or inner is None or getattr(command, "invoke_without_command", False):
            names = [name for each in command.params for name in each.opts]
            yield words, names, [name for each in command.params for name in each.secondary_opts]
        for name, each in (inner or {}).items():
            yield from walk(each, (*words, name))

    yield from walk(typer.main.get_command(command_line()), ())


def test_the_command_line_is_described() -> None:
    text = formatted(page("beowire.1"))
    for words, names, _ in options():
        assert " ".join(words) in text, words
        for name in names:
            if name.startswith("-"):
                assert re.search(rf"{name}(?![\w-])", text), (words, name)


def test_no_option_is_invented() -> None:
    known = {name for _, names, negations in options() for name in (*names, *negations)}
    described = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", formatted(page("beowire.1"))))
    assert described <= known


def counters() -> set[str]:
    """All that the file of BEOWIRE_STATS has names for, as the sources print it."""
    stats = (ROOT / "hosts" / "user" / "stats.c").read_text()
    drops = (ROOT / "engine" / "drop.c").read_text()
    known = set(re.findall(r'\\"(\w+)\\":', stats))
    known |= set(re.findall(r'^\t\t\{"(\w+)",', stats, re.M))
    known |= set(re.findall(r'bw_stats_link\(f, "(\w+)"', stats))
    return known | set(re.findall(r'\[BW_DROP_\w+\] = "(\w+)"', drops)) - {"none"}


def test_all_counters_are_described() -> None:
    known = counters()
    assert {"pid", "kernel", "rx_overruns", "evicted", "seal", "send_error", "peers"} <= known
    _, _, text = page("beowire.7").read_text().partition(".Sh COUNTERS")
    text, _, _ = text.partition(".Sh ")
    listed = re.findall(r"^\.(?:It|Pq)? ?Cm (\w+(?: , \w+)*)", text, re.M)
    described = {name for each in listed for name in each.split(" , ")}
    assert known - described == set()
    assert described - known == set()


def test_the_simulators_options_are_described() -> None:
    help_text = subprocess.run(
        [places.product("hosts/sim/beowire-sim"), "--help"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    known = set(re.findall(r"--[a-z]+", help_text)) | {"--help"}
    described = set(re.findall(r"--[a-z]+", formatted(page("beowire-sim.1"))))
    assert described == known


def test_the_link_emulators_options_and_settings_are_described() -> None:
    help_text = subprocess.run(
        [places.product("emulator/beowire-link"), "--help"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    source = page("beowire-link.1").read_text()
    text = formatted(page("beowire-link.1"))
    described = set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", text))
    assert described == set(re.findall(r"--[a-z]+(?:-[a-z]+)*", help_text))
    settings = set(re.findall(r"^\.It Cm (\w+) Ns = Ns", source, re.M))
    assert settings == set(re.findall(r"\b([a-z]+)=[A-Z]", help_text))


def test_the_servers_options_are_described() -> None:
    usage = subprocess.run(
        [places.product("hosts/kernel/server/beowire-server")],
        check=False,
        capture_output=True,
        text=True,
    ).stderr
    known = set(re.findall(r"(?<!\w)-[a-z]\b", usage))
    described = set(re.findall(r"(?<!\w)-[a-z]\b", formatted(page("beowire-server.1"))))
    assert described == known


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("beowire-attach.8", "programs/beowire-attach"),
        ("beowire-link.1", "emulator/beowire-link"),
        ("beowire-server.1", "hosts/kernel/server/beowire-server"),
        ("beowire-sim.1", "hosts/sim/beowire-sim"),
        ("beowired.8", "service/beowired"),
    ],
)
def test_the_status_after_a_wrong_command_line_is_described(name: str, program: str) -> None:
    _, _, told = formatted(page(name)).partition("EXIT STATUS")
    told, _, _ = re.sub(r"\s+", " ", told).partition("SEE ALSO")
    path = places.product(program)
    done = subprocess.run([path, "--no-such-option"], capture_output=True, check=False)
    assert re.search(
        rf"\b{done.returncode} (for a wrong command line|(if the|The) command line is wrong)", told
    ), done.returncode


def test_every_variable_is_described() -> None:
    files = [
        *(ROOT / "hosts" / "user").rglob("*.c"),
        *(ROOT / "adapters" / "libfabric").glob("*.c"),
        *(ROOT / "adapters" / "replicate").glob("*.c"),
        *(ROOT / "adapters" / "sockets").glob("*.c"),
    ]
    source = "".join(path.read_text() for path in files)
    read = set(re.findall(r'"(BEOWIRE_\w+)"', source))
    text = page("beowire.7").read_text()
    described = set(re.findall(r"^\.It Ev (BEOWIRE_\w+)", text, flags=re.M))
    assert described == read


def test_every_function_is_described() -> None:
    header = (ROOT / "hosts" / "user" / "beowire.h").read_text()
    declared = set(re.findall(r"^BW_API [^;(]*?\b(bw_\w+)\(", header, flags=re.M))
    text = page("libbeowire.3").read_text()
    assert set(re.findall(r"^\.F[no] (bw_\w+)", text.split(".Sh DESCRIPTION")[0], re.M)) == declared
