# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files of settings: tools and library read the same in them, and who has set what is told."""

import json
import os
import random
import re
import secrets
import subprocess
from pathlib import Path

import pytest
from beowire import places, settings
from beowire.bug.parts import KNOWN_VARIABLES
from beowire.settings import Files
from beowire_cli import beowire

_PIECES = (
    *(b"BEOWIRE_MTU", b"BEOWIRE_NODE", b"BEOWIRE_WAIT", b"BEOWIRE_KEY", b"BEOWIRE_MT", b"beowire"),
    *(b"=", b"=", b"=", b"=", b" ", b"\t", b"\n", b"\n", b"\n", b"\r\n", b"#", b"# x\n", b"\0"),
    *(b"\x1b[2J", b"\xff", b"\xc3\xa4", b"1500", b"a b", b"\x7f", b"\x0c", b"\x0b", b"\x85"),
    *(b"BEOWIRE_LINKS = udp\n", b"  BEOWIRE_RING\t=\t1 \n", b"a" * 1000, b"0123456789", b"export "),
)
_PAIRS = 150
_SAFE = 0o644
Read = tuple[dict[str, tuple[int, int, str]], list[str], int]
"""Number of the file, line and value by name; the first troubles, and how many there are."""


def of_tools(user: Path, system: Path) -> Read:
    """What the tools read."""
    files = Files()
    files.read(user, own=True)
    files.read(system, own=False)
    read = {
        name: (1 if each.path == user else 2, each.line, each.value)
        for name, each in files.settings.items()
    }
    return read, files.troubles[:8], len(files.troubles)


def of_library(pairs: list[tuple[Path, Path]]) -> list[Read]:
    """What the library reads."""
    program = places.product("tests/user/show_settings")
    words = [str(each) for pair in pairs for each in pair]
    said = subprocess.run([program, *words], capture_output=True, check=True).stdout
    parts = iter([os.fsdecode(each) for each in said.split(b"\0")[:-1]])
    found = []
    read: dict[str, tuple[int, int, str]] = {}
    troubles: list[str] = []
    for part in parts:
        if part == "=":
            found.append((read, troubles, int(next(parts))))
            read, troubles = {}, []
        elif part == "!":
            troubles.append(next(parts))
        else:
            read[part] = (int(next(parts)), int(next(parts)), next(parts))
    return found


def write(file: Path, text: bytes, mode: int = _SAFE) -> Path:
    file.write_bytes(text)
    file.chmod(mode)
    return file


def test_both_readers_know_the_same_names() -> None:
    said = subprocess.run(
        [places.product("tests/user/show_settings")], capture_output=True, check=True, text=True
    ).stdout
    assert tuple(said.split("\0")[:-1]) == settings.NAMES
    own = {"BEOWIRE_BUILD", "BEOWIRE_CONFIG"}
    known = {name for name in KNOWN_VARIABLES if name.startswith("BEOWIRE_")} - own
    known -= {name for name in known if name.startswith("BEOWIRE_REPLICATE")}
    assert set(settings.NAMES) - {"BEOWIRE_KEY"} == known


def test_both_readers_read_the_same(tmp_path: Path) -> None:
    seed = secrets.randbits(32)
    draw = random.Random(seed)
    pairs = []
    for number in range(_PAIRS):
        texts = [b"".join(draw.choices(_PIECES, k=draw.randrange(60))) for _ in range(2)]
        pairs.append(
            (
                write(tmp_path / f"user{number}", texts[0]),
                write(tmp_path / f"system{number}", texts[1]),
            )
        )
    told = of_library(pairs)
    assert len(told) == _PAIRS
    for pair, theirs in zip(pairs, told, strict=True):
        assert of_tools(*pair) == theirs, f"seed {seed}: {pair[0].read_bytes()!r}"
    assert any(read for read, *_ in told)
    assert any(troubles for _, troubles, _ in told)


def test_both_readers_refuse_the_same_files(tmp_path: Path) -> None:
    text = b"BEOWIRE_MTU = 600\n"
    missing = tmp_path / "missing"
    pairs = []
    for name, content, mode in (
        ("right", text, 0o600),
        ("group", text, 0o620),
        ("others", text, 0o602),
        ("full", text + b"#" * (settings.FILE_MAX - len(text)), _SAFE),
        ("long", text + b"#" * (settings.FILE_MAX + 1 - len(text)), _SAFE),
        ("empty", b"", _SAFE),
        ("line", b"BEOWIRE_NODE=" + b"a" * (settings.LINE_MAX - 13), _SAFE),
        ("longer", b"BEOWIRE_NODE=" + b"a" * (settings.LINE_MAX - 12), _SAFE),
    ):
        file = write(tmp_path / name, content, mode)
        pairs += [(file, missing), (missing, file)]
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe", 0o600)
    pairs += [(tmp_path / "directory", tmp_path / "pipe"), (tmp_path / "right" / "x", missing)]
    if os.geteuid() == 0:
        given = write(tmp_path / "given", text)
        os.chown(given, 4321, 4321)
        pairs += [(given, missing), (missing, given)]
    told = of_library(pairs)
    assert [of_tools(*pair) for pair in pairs] == told
    read = [bool(each[0]) for each in told]
    assert read[:12] == [True, True, *[False] * 4, True, True, *[False] * 4]
    assert read[12:18] == [True, True, False, False, False, False]
    if os.geteuid() == 0:
        assert read[18:] == [False, True]


@pytest.fixture
def places_of_files(tmp_path: Path) -> dict[str, str]:
    """Variables by which the user's file is read, and no other that is not of this test."""
    return {"XDG_CONFIG_HOME": str(tmp_path), "BEOWIRE_CONFIG": ""}


def test_info_tells_who_has_set_what(tmp_path: Path, places_of_files: dict[str, str]) -> None:
    file = write(
        tmp_path / "beowire.conf", b"# ours\nBEOWIRE_LINKS = local\nBEOWIRE_MTU = 900\nnonsense\n"
    )
    answer = beowire("info", "--json", **places_of_files, BEOWIRE_MTU="1000")
    assert answer.status == 0, answer.errors
    told = json.loads(answer.output)
    assert told["settings"]["BEOWIRE_LINKS"] == {"value": "local", "from": str(file), "line": 2}
    assert told["settings"]["BEOWIRE_MTU"] == {"value": "1000", "from": "environment", "line": 0}
    assert told["environment"]["BEOWIRE_MTU"] == "1000"
    assert "BEOWIRE_LINKS" not in told["environment"]
    assert "BEOWIRE_LINKS=local does not allow it" in told["links"]["udp"]["why"]
    assert told["settings_not_in_force"] == [f"{file}:4: this is not NAME = VALUE"]
    assert answer.errors.count(f"{file}:4:") == 1
    people = beowire("info", **places_of_files).output
    assert f"  BEOWIRE_LINKS=local  ({file}:2)" in people
    assert f"not in force: {file}:4: " in people


def test_a_wrong_value_of_a_file_is_an_error(
    tmp_path: Path, places_of_files: dict[str, str]
) -> None:
    file = write(tmp_path / "beowire.conf", b"\nBEOWIRE_ENCRYPT = yes\n")
    answer = beowire("info", **places_of_files)
    assert answer.status == 1
    assert f"BEOWIRE_ENCRYPT=yes ({file}:2) is not valid" in answer.errors


def test_the_tools_take_settings_from_files(
    tmp_path: Path, places_of_files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "beowire.conf", b"BEOWIRE_STATE = /of/a/file\nBEOWIRE_KEY = /no/key\n")
    for name, value in places_of_files.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("BEOWIRE_STATE", raising=False)
    settings.of_files.cache_clear()
    try:
        assert str(places.state_path()) == "/of/a/file"
        monkeypatch.setenv("BEOWIRE_STATE", "/of/the/environment")
        assert str(places.state_path()) == "/of/the/environment"
        monkeypatch.delenv("BEOWIRE_STATE")
        settings.of_files.cache_clear()
        monkeypatch.setenv("BEOWIRE_CONFIG", "off")
        assert str(places.state_path()) != "/of/a/file"
    finally:
        settings.of_files.cache_clear()


def test_the_file_of_settings_can_be_named(tmp_path: Path) -> None:
    file = write(tmp_path / "mine", b"BEOWIRE_LINKS = local\n")
    told = json.loads(beowire("info", "--json", BEOWIRE_CONFIG=str(file)).output)
    assert told["settings"]["BEOWIRE_LINKS"]["from"] == str(file)
    answer = beowire("info", BEOWIRE_CONFIG=f"{file}x")
    assert answer.status == 0
    assert f"{file}x cannot be opened" in answer.errors


def test_the_example_has_all_settings_right(tmp_path: Path) -> None:
    example = places.source("packaging/debian/examples/beowire.conf").read_bytes()
    named = [line for line in example.splitlines() if line.startswith(b"#BEOWIRE_")]
    file = write(tmp_path / "f", b"\n".join(line.removeprefix(b"#") for line in named))
    ((read, troubles, _),) = of_library([(file, tmp_path / "missing")])
    assert not troubles
    assert set(read) == set(settings.NAMES)
    known = {b"BEOWIRE_KEY", b"BEOWIRE_STATE"}
    usable = [line for line in named if line[1:].split(b" ")[0] not in known]
    write(file, b"\n".join(line.removeprefix(b"#") for line in usable))
    said = beowire("info", BEOWIRE_CONFIG=str(file)).errors
    assert "is not valid" not in said


def test_all_that_the_library_and_its_users_read_may_stand_in_a_file() -> None:
    """None of them asks the environment alone, but for the name of the file itself."""
    rooms = ("hosts/user", "adapters/libfabric", "adapters/sockets")
    sources = [file for room in rooms for file in places.source(room).rglob("*.c")]
    text = "".join(file.read_text() for file in sources)
    assert set(re.findall(r'getenv\("(BEOWIRE_\w+)"', text)) == {"BEOWIRE_CONFIG"}
    assert set(re.findall(r'"(BEOWIRE_\w+)"', text)) == {*settings.NAMES, "BEOWIRE_CONFIG"}
    assert "getenv(name)" not in text.replace("{.value = getenv(name)}", "")
