# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire info`: what libbeowire's own program says, and all that it can be asked."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from beowire.lab import lab
from beowire_cli import COMMAND, beowire


def test_for_machines() -> None:
    answer = beowire("info", "--json")
    assert answer.status == 0, answer.errors
    assert json.loads(answer.output)


def test_what_is_open_to_others_is_said(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("5a" * 32 + "\n")
    keyed = {"BEOWIRE_KEY": str(key)}
    for variables, said, told in (
        ({"BEOWIRE_KEY": ""}, "whoever sees frames can read payloads, change", [False, False]),
        (keyed, "but whoever sees them can read payloads", [True, False]),
        (keyed | {"BEOWIRE_ENCRYPT": "1"}, "nobody without the key can read", [True, True]),
    ):
        assert said in beowire("info", **variables).output
        answer = json.loads(beowire("info", "--json", **variables).output)
        assert [answer["keyed"], answer["encrypted"]] == told
        assert answer["key_source"] == ("BEOWIRE_KEY" if told[0] else "")


def test_a_listening_node_is_reached(job_lab: lab.Lab) -> None:
    def on(node: str, *arguments: str) -> "subprocess.Popen[str]":
        command = ["sh", str(job_lab.enter_path(node)), *COMMAND, "info", *arguments]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
        )

    listener = on("node2", "--listen", "--port", "47555")
    assert listener.stdout is not None
    assert listener.stdout.readline() != ""
    asker = on("node1", "--peer", f"{job_lab.address('node2')}:47555")
    output, errors = asker.communicate(timeout=240)
    assert asker.returncode == 0, errors
    assert ("packet" if job_lab.mode == "namespace" else "udp") in output
    listener.send_signal(signal.SIGINT)
    _, errors = listener.communicate(timeout=240)
    assert listener.returncode == 0, errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--peer", "127.0.0.1:47556"], "run `beowire-info --listen` there"),
        (["--peer", "no.such.host.invalid"], "no.such.host.invalid"),
        (["--listen", "--peer", "a"], "Usage"),
        (["--listen", "--port", "x"], "port"),
    ],
)
def test_bad_input_is_named(arguments: list[str], said: str) -> None:
    answer = beowire("info", *arguments)
    assert answer.status != 0
    assert said in answer.errors
