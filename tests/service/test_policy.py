# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The policy file of beowired, and the place of its socket: what is wrong is told with file, line
and cause, and the service does not start."""

import os
import socket
import subprocess
from pathlib import Path

import pytest
from served import (
    USER,
    attack,
    open_directory,
    served,
    service_program,
)

GOOD = "groups = 0\ninterfaces = eth0\n"
UNFIT = 78
"""The exit status where the policy is not good; the unit of systemd names it."""


def beowired(*words: str) -> "subprocess.CompletedProcess[str]":
    """The service, which is expected to end at once."""
    program = service_program()
    return subprocess.run(
        [program, *words], capture_output=True, text=True, timeout=60, check=False
    )


def checked(file: Path, text: str | bytes) -> tuple[int, str]:
    """What --check says of this policy."""
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    done = beowired("--check", "--policy", str(file))
    return done.returncode, done.stdout + done.stderr.removeprefix("beowired: ")


def test_a_good_policy(tmp_path: Path) -> None:
    text = (
        "# who\n\n users =  0 ,1000\ngroups=0\n\tinterfaces = eth0, eth1 \nethertype = 0x88B6\n"
        "endpoints = 4096\nring-memory = 2G\nring-memory-total = 1024G\nattempts = 1"
    )
    assert checked(tmp_path / "conf", text) == (0, "the policy is good\n")
    assert checked(tmp_path / "conf", "users = *\ninterfaces = eth0")[0] == 0


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("users", 1, "'users' is no 'key = value'"),
        ("user = 0", 1, "there is no key 'user'; keys are users, groups"),
        ("users = 0\nusers = 1", 2, "users is there twice"),
        ("users = 0,", 1, "users: '' is not taken"),
        ("users = -1", 1, "users: '-1' is not taken"),
        ("groups = 4294967295", 1, "groups: '4294967295' is not taken"),
        ("users = 0\n\n#\ninterfaces = eth0, eth0", 4, "interfaces: 'eth0' is not taken"),
        ("interfaces = an-interface-too-long", 1, "interfaces: 'an-interface-too-long' is not"),
        ("interfaces = a,b,c,d,e,f,g,h,i", 1, "interfaces: 'i' is not taken"),
        ("ethertype = 0x0800", 1, "ethertype: '0x0800' is not taken; give 0x0600 to 0xFFFF"),
        ("ethertype = 88B5", 1, "ethertype: '88B5' is not taken"),
        ("endpoints = 0", 1, "endpoints: '0' is not taken; give 1 to 4096"),
        ("endpoints = 1 2", 1, "endpoints: '1 2' is not taken"),
        ("ring-memory = 1K", 1, "ring-memory: '1K' is not taken"),
        ("ring-memory = 99999G", 1, "ring-memory: '99999G' is not taken"),
        ("ring-memory = M", 1, "ring-memory: 'M' is not taken"),
        ("ring-memory-total = 1023K", 1, "ring-memory-total: '1023K' is not taken; give 1M to"),
        ("attempts = 1e3", 1, "attempts: '1e3' is not taken"),
        ("users = " + "0" * 2000, 1, "the line is too long"),
        (b"users = 0\0\ninterfaces = eth0\n", 1, "has a zero byte"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str | bytes, line: int, says: str) -> None:
    file = tmp_path / "conf"
    status, said = checked(file, text)
    assert status == UNFIT
    assert said.startswith(f"{str(file)[:80]}:{line}: ")
    assert says in said


@pytest.mark.parametrize("key", ["users", "groups"])
def test_a_name_that_nobody_knows_may_be_known_later(tmp_path: Path, key: str) -> None:
    """What tells names may come up after the service: the unit starts it again."""
    status, said = checked(tmp_path / "conf", f"{key} = 0, nobody-at-all\ninterfaces = eth0")
    assert status == 1
    assert f"{key}: 'nobody-at-all' is not taken; give {key} of" in said


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    assert "nobody is allowed; add 'groups = NAME' or" in checked(file, "interfaces = eth0\n")[1]
    assert "no interface is named; add" in checked(file, "users = 0\n")[1]
    missing = beowired("--policy", str(tmp_path / "none"))
    assert missing.returncode == UNFIT
    assert "none cannot be read: No such file or directory; beowired(8)" in missing.stderr


def test_a_policy_that_others_may_write_is_none(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    for mode, owner in ((0o666, 0), (0o664, 0), (0o644, USER)):
        file.write_text(GOOD)
        file.chmod(mode)
        os.chown(file, owner, 0)
        assert "must be a file of root's that nobody else may" in checked(file, GOOD)[1]
    assert beowired("--check", "--policy", str(tmp_path)).returncode == UNFIT


def test_the_command_line_is_checked() -> None:
    assert beowired("--nonsense").returncode == 2
    assert beowired("word").returncode == 2
    assert "--policy FILE" in beowired("--help").stdout


def refusal(node: str, directory: Path, path: Path) -> str:
    """Why the service does not start with its socket there."""
    policy = directory / "conf"
    policy.write_text(GOOD)
    program = service_program()
    done = subprocess.run(
        ["ip", "netns", "exec", node, program, "--policy", str(policy), "--socket", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


def test_nothing_but_a_stale_socket_is_replaced(nodes: tuple[str, str]) -> None:
    with open_directory() as directory:
        victim = directory / "victim"
        victim.write_text("precious")
        for make in (
            lambda path: path.write_text("a file"),
            lambda path: path.symlink_to(victim),
            lambda path: path.symlink_to(directory / "nowhere"),
            lambda path: path.mkdir(),
        ):
            path = directory / f"sock{len(list(directory.iterdir()))}"
            make(path)
            assert "is there and is no socket; fix: remove it" in refusal(nodes[0], directory, path)
        assert victim.read_text() == "precious"
        assert not (directory / "nowhere").exists()
        living = directory / "living"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
            other.bind(str(living))
            other.listen()
            assert "another beowired listens at" in refusal(nodes[0], directory, living)
        directory.chmod(0o777)
        told = refusal(nodes[0], directory, directory / "sock")
        assert "must be a directory of root's that nobody else may write to" in told
        assert "fix: mkdir" in refusal(nodes[0], directory, directory / "none" / "sock")


def test_an_interface_that_is_missing_is_told(nodes: tuple[str, str]) -> None:
    with open_directory() as directory:
        policy = directory / "conf"
        for name, says in (("eth7", "eth7: looking at it: No such device"), ("lo", "lo: ")):
            policy.write_text(f"users = 0\ninterfaces = {name}\n")
            program = service_program()
            words = ["--policy", str(policy), "--socket", str(directory / "sock")]
            done = subprocess.run(
                ["ip", "netns", "exec", nodes[0], program, *words],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 1
            assert f"interface {says}" in done.stderr
            assert not (directory / "sock").exists()


def test_everybody(nodes: tuple[str, str]) -> None:
    with served(nodes[0], "users = *\ninterfaces = eth0\n") as service:
        assert attack(service, "told(Endpoint().answer.kind)", user=12345) == 3
