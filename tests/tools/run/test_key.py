# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The cluster's key: made safely, the same to a shell and to libbeowire, told of by its fingerprint
alone, and looked for on every node before a job starts."""

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from beowire import places
from beowire.lab import lab
from beowire_cli import beowire

DIGITS = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"


def print_of(digits: str) -> str:
    text = f"beowire key fingerprint\n{digits.lower()}\n"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def digits_of(file: Path) -> str:
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == 1
    return lines[0]


def write(file: Path, content: bytes | str, mode: int = 0o600) -> Path:
    file.unlink(missing_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    file.chmod(mode)
    return file


@pytest.mark.parametrize("mask", [0, 0o077, 0o777])
def test_a_new_key_is_random_and_its_owners(mask: int, tmp_path: Path) -> None:
    seen = set()
    for name in ("a", "b"):
        file = tmp_path / name
        before = os.umask(mask)
        try:
            answer = beowire("key", "new", str(file))
        finally:
            os.umask(before)
        assert answer.status == 0, answer.errors
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        digits = digits_of(file)
        assert re.fullmatch(r"[0-9a-f]{64}", digits)
        assert answer.output.split() == [print_of(digits), str(file)]
        assert digits not in answer.output + answer.errors
        seen.add(digits)
    assert len(seen) == 2


def test_a_key_is_not_overwritten_unasked(tmp_path: Path) -> None:
    file = tmp_path / "key"
    beowire("key", "new", str(file))
    old = file.read_text()
    answer = beowire("key", "new", str(file))
    assert answer.status == 1
    assert "is there already" in answer.errors
    assert "--force" in answer.errors
    assert file.read_text() == old

    # a new file takes the place of the name; who has the old one open keeps it
    target = tmp_path / "target"
    file.rename(target)
    file.symlink_to(target)
    assert beowire("key", "new", str(file)).status == 1
    told = json.loads(beowire("key", "new", "--force", "--json", str(file)).output)
    assert target.read_text() == old
    assert not file.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert told == {"file": str(file), "fingerprint": print_of(digits_of(file))}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["key", "target"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["key", "new", "/nowhere/key"], "/nowhere/key cannot be written: No such file"),
        (["key", "new", "/proc/key", "--force"], "/proc/key cannot be written"),
        (["key", "new", "/tmp", "--force"], "/tmp is no regular file"),
        (["key", "new", "/dev/null", "--force"], "/dev/null is no regular file"),
        (["key", "show", "/nowhere/key"], "there is no such file"),
        (["key", "show", "/dev/null"], "it is no regular file"),
        (["key", "show", "/etc/passwd"], "it has mode 644"),
        (["key", "check", "/k"], "Where to run?"),
        (["key", "check", "--hosts", "a"], "Which key?"),
        (["key", "check", "/k", "--hosts", "a", "--ssh", "false"], "did not do as asked"),
        (["run", "--hosts", "a", "-n", "1", "--transport", "tcp", "--key", "/k", "--", "true"],
         "Only Beowire takes a key"),
    ],
)  # fmt: skip
def test_bad_input_is_named(arguments: list[str], said: str) -> None:
    answer = beowire(*arguments, BEOWIRE_KEY="")
    assert answer.status == 1
    assert answer.output == ""
    assert "Traceback" not in answer.errors
    assert said in answer.errors
    assert len(answer.errors.splitlines()) == 2


FILES: dict[str, tuple[bytes, int]] = {
    "plain": (f"{DIGITS}\n".encode(), 0o600),
    "read-only": (f"{DIGITS}\n".encode(), 0o400),
    "no newline": (DIGITS.encode(), 0o600),
    "remarks": (f"# one\n{DIGITS}\n#two\n".encode(), 0o600),
    "group": (f"{DIGITS}\n".encode(), 0o640),
    "others": (f"{DIGITS}\n".encode(), 0o604),
    "written by others": (f"{DIGITS}\n".encode(), 0o602),
    "executable": (f"{DIGITS}\n".encode(), 0o700),
    "sticky": (f"{DIGITS}\n".encode(), 0o1600),
    "empty": (b"", 0o600),
    "remarks alone": (b"# none\n", 0o600),
    "short": (DIGITS[1:].encode(), 0o600),
    "long": (f"{DIGITS}0\n".encode(), 0o600),
    "two": (f"{DIGITS}\n{DIGITS}\n".encode(), 0o600),
    "line behind": (f"{DIGITS}\n\n".encode(), 0o600),
    "line before": (f"\n{DIGITS}\n".encode(), 0o600),
    "blank": (f" {DIGITS}\n".encode(), 0o600),
    "carriage return": (f"{DIGITS}\r\n".encode(), 0o600),
    "zero byte": (f"{DIGITS}\0\n".encode(), 0o600),
    "zero byte within": (f"{DIGITS[:32]}\0{DIGITS[32:]}\n".encode(), 0o600),
    "no digit": (f"{DIGITS[:63]}g\n".encode(), 0o600),
    "zeroes": (b"0" * 64 + b"\n", 0o600),
    "large": (f"{DIGITS}\n".encode() + b"#" * 4096, 0o600),
}


@pytest.mark.parametrize("what", FILES)
def test_the_tools_and_the_library_take_the_same_files(what: str, tmp_path: Path) -> None:
    content, mode = FILES[what]
    file = write(tmp_path / "key", content, mode)
    variables = {**os.environ, "BEOWIRE_KEY": str(file), "BEOWIRE_LINKS": "local"}
    info = [places.product("programs/beowire-info"), "--check"]
    library = subprocess.run(info, capture_output=True, text=True, check=False, env=variables)
    answer = beowire("key", "show", str(file))
    good = what in ("plain", "read-only", "no newline", "remarks")
    assert (library.returncode == 0) == good, library.stderr
    assert (answer.status == 0) == good, answer.errors
    if good:
        assert answer.output.split()[0] == print_of(DIGITS)
    else:
        assert "is no key" in answer.errors
        assert "BEOWIRE_KEY" in library.stderr
    assert DIGITS[:8] not in answer.output + answer.errors + library.stderr


@pytest.fixture
def hosts(tmp_path: Path) -> str:
    """A command that reaches hosts whose files lie here, in a directory for each; it writes down
    what it is told to execute."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    agent = tmp_path / "agent"
    agent.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$*" >>"$0.log"\n'
        f'exec sh -c "$(printf "%s" "$2" | sed "s,{tmp_path}/,{tmp_path}/$1/,")"\n'
    )
    agent.chmod(0o755)
    return str(agent)


def test_all_hosts_have_the_same(hosts: str, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / name / "key", f"{DIGITS}\n")
    check = ["key", "check", str(tmp_path / "key"), "--ssh", hosts, "--hosts"]
    answer = beowire(*check, "a,b,c")
    assert answer.status == 0, answer.errors
    assert answer.output.count(print_of(DIGITS)) == 3

    other = DIGITS[::-1]
    write(tmp_path / "b" / "key", f"# another one\n{other}\n")
    answer = beowire(*check, "a,b,c")
    assert answer.status == 1
    assert "not the same key everywhere" in answer.errors
    assert f"{print_of(other)} on b" in answer.errors
    assert beowire(*check, "a,c").status == 0

    (tmp_path / "b" / "key").chmod(0o644)
    (tmp_path / "c" / "key").unlink()
    answer = beowire(*check, "a,b,c", "--json")
    assert answer.status == 1
    assert "is no key on b: it has mode 644" in answer.errors
    told = json.loads(answer.output)
    assert not told["same"]
    assert told["hosts"]["a"] == {"fingerprint": print_of(DIGITS), "why": None}
    assert told["hosts"]["c"]["fingerprint"] is None
    assert "no such file" in told["hosts"]["c"]["why"]
    log = Path(f"{hosts}.log").read_text()
    assert "sha256sum" in log
    for digits in (DIGITS, DIGITS.lower(), other):
        assert digits not in log


def test_a_host_that_answers_something_else(tmp_path: Path) -> None:
    agent = write(tmp_path / "agent", "#!/bin/sh\necho 'key 0123456\033[2Jx'\n", 0o755)
    check = ["key", "check", "/k", "--ssh", str(agent), "--hosts", "a"]
    answer = beowire(*check)
    assert answer.status == 1
    assert "is no key on a: key 0123456?[2Jx" in answer.errors


def test_no_command_gets_the_key(tmp_path: Path) -> None:
    """All that the script calls are replaced by commands that write down their arguments."""
    for name in ("stat", "id", "grep", "tr", "sha256sum", "printf", "cat", "sed", "cut"):
        real = shutil.which(name)
        assert real is not None
        text = f'#!/bin/sh\nprintf "%s\\n" "{name} $*" >>{tmp_path}/log\nexec {real} "$@"\n'
        write(tmp_path / name, text, 0o755)
    file = write(tmp_path / "key", f"{DIGITS}\n")
    answer = beowire("key", "show", str(file), PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert answer.output.split()[0] == print_of(DIGITS)
    log = (tmp_path / "log").read_text()
    assert {"stat", "grep", "tr", "sha256sum"} <= {line.split()[0] for line in log.splitlines()}
    assert DIGITS[:8] not in log


needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None,
    reason="Open MPI is not installed: apt-get install openmpi-bin",
)


@needs_mpi
def test_ranks_are_told_where_the_key_is(job_lab: lab.Lab, tmp_path: Path) -> None:
    file = write(tmp_path / "key", f"{DIGITS}\n")
    run = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "beowire"]
    program = ["--", "sh", "-c", "echo key=$BEOWIRE_KEY; tr '\\0' '\\n' </proc/$PPID/cmdline"]
    relative = os.path.relpath(file)
    for words, variables in (
        (["--key", str(file)], {}),
        (["--key", relative], {}),
        ([], {"BEOWIRE_KEY": str(file)}),
    ):
        answer = beowire(*run, *words, *program, **variables)
        assert answer.status == 0, answer.errors
        named = re.findall("^key=(.*)$", answer.output, re.MULTILINE)
        assert [Path(each).resolve() for each in named] == [file, file]
        assert all(Path(each).is_absolute() for each in named)
        assert DIGITS[:16] not in answer.output + answer.errors


@needs_mpi
@pytest.mark.parametrize("way", ["option", "variable"])
def test_a_job_whose_key_cannot_be_used_is_refused(
    way: str, job_lab: lab.Lab, tmp_path: Path
) -> None:
    file = write(tmp_path / "key", f"{DIGITS}\n", 0o644)
    run = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "beowire"]
    if way == "option":
        answer = beowire(*run, "--key", str(file), "--", "true")
    else:
        answer = beowire(*run, "--", "true", BEOWIRE_KEY=str(file))
        assert "is another file" in beowire(*run, "--", "true", BEOWIRE_KEY="key").errors
    assert answer.status == 1
    assert f"{file} is no key on node1: it has mode 644" in answer.errors
    assert "mpirun" not in answer.errors


@needs_mpi
def test_ranks_are_told_to_encrypt(job_lab: lab.Lab, tmp_path: Path) -> None:
    file = write(tmp_path / "key", f"{DIGITS}\n")
    run = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "beowire"]
    program = ["--", "sh", "-c", "echo encrypt=$BEOWIRE_ENCRYPT key=$BEOWIRE_KEY"]
    for words, variables in (
        (["--key", str(file), "--encrypt"], {}),
        (["--encrypt"], {"BEOWIRE_KEY": str(file)}),
    ):
        answer = beowire(*run, *words, *program, **variables)
        assert answer.status == 0, answer.errors
        assert answer.output.count(f"encrypt=1 key={file}\n") == 2
    answer = beowire(*run, "--key", str(file), *program)
    assert answer.output.count(f"encrypt= key={file}\n") == 2


def test_nothing_is_encrypted_without_a_key() -> None:
    where = ["--hosts", "a", "-n", "1"]
    answer = beowire("run", *where, "--transport", "beowire", "--encrypt", "--", "true")
    assert (answer.status, "without a key" in answer.errors) == (1, True)
    answer = beowire("run", *where, "--transport", "tcp", "--encrypt", "--", "true")
    assert (answer.status, "Leave --encrypt out" in answer.errors) == (1, True)


@needs_mpi
def test_only_hosts_with_ranks_are_asked(hosts: str, tmp_path: Path) -> None:
    write(tmp_path / "a" / "key", f"{DIGITS}\n")
    where = ["--hosts", "a,b", "--ssh", hosts, "--key", str(tmp_path / "key")]
    answer = beowire("run", *where, "-n", "2", "--transport", "beowire", "--", "true")
    assert answer.status == 1
    assert "is no key on b: there is no such file" in answer.errors
    alone = ["-n", "1", "--ppn", "1", "--transport", "beowire", "--", "/no/such/program"]
    answer = beowire("run", *where, *alone)
    assert "is no key" not in answer.errors
