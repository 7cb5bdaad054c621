# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command `status` as a user meets it."""

import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from beowire import places
from beowire.status import tables
from beowire_cli import COMMAND, beowire
from rich.console import Console
from terminal import on_terminal

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 240.0
PATIENTLY = ("--timeout", str(PATIENCE_S))
"""What a host may take that answers, on a busy machine."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the endpoints of the test have their boards."""
    directory = tmp_path / "boards"
    directory.mkdir()
    return directory


@pytest.fixture
def waiting(place: Path) -> Iterator[int]:
    """A process with an endpoint that waits for a client; its number."""
    variables = {"BEOWIRE_STATUS": str(place), "BEOWIRE_LINKS": "udp"}
    variables["BEOWIRE_UDP_ADDRESS"] = "127.0.0.1"
    with subprocess.Popen(
        [places.product("tests/user/actor")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | variables,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"open\n")
        process.stdin.flush()
        assert b'"result":0' in process.stdout.readline()
        yield process.pid
        process.kill()


def keys(told: Any) -> set[str]:
    """The names in an object, but for those that are a counter's or a node's own."""
    if isinstance(told, dict):
        return set(told) | {key for each in told.values() for key in keys(each)}
    if isinstance(told, list):
        return {key for each in told for key in keys(each)}
    return set()


def test_every_name_is_documented(place: Path, waiting: int) -> None:
    answer = beowire("status", "--json", BEOWIRE_STATUS=str(place))
    told = json.loads(answer.output)
    assert [each["pid"] for each in told["endpoints"]] == [waiting]
    text = (ROOT / "docs" / "status.md").read_text()
    told["processes"] = {"": next(iter(told["processes"].values()))}
    named = keys(told) - {"", "udp", "packet", "local", "kernel"}
    rates = {key for each in told["endpoints"] for key in each["rates"]}
    assert [name for name in sorted(named - rates) if f"`{name}`" not in text] == []


def test_the_table_names_the_endpoint(place: Path, waiting: int) -> None:
    answer = beowire("status", BEOWIRE_STATUS=str(place))
    assert answer.status == 0
    assert f":{waiting}" in answer.output
    assert "actor" in answer.output
    assert "Nobody is slow, silent or lossy." in answer.output


def test_where_nothing_runs(place: Path) -> None:
    answer = beowire("status", BEOWIRE_STATUS=str(place))
    assert (answer.status, answer.output) == (0, "No endpoint is open here.\n")


def test_prometheus(place: Path, waiting: int) -> None:
    answer = beowire("status", "--prometheus", BEOWIRE_STATUS=str(place))
    assert answer.status == 0
    assert "beowire_endpoint_info{" in answer.output
    assert 'program="actor"' in answer.output
    assert str(waiting) in answer.output


def test_watch_prints_blocks_where_there_is_no_terminal(place: Path) -> None:
    command = [*COMMAND, "status", "--watch"]
    variables = os.environ | {"BEOWIRE_STATUS": str(place)}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
    ) as watch:
        assert watch.stdout is not None
        lines = [watch.stdout.readline() for _ in range(3)]
        watch.send_signal(signal.SIGINT)
        _, errors = watch.communicate(timeout=PATIENCE_S)
    assert lines == ["No endpoint is open here.\n"] * 3
    assert watch.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize(("width", "whole"), [(80, False), (200, True)])
def test_a_narrow_table_leaves_columns_out(
    place: Path, waiting: int, width: int, whole: bool
) -> None:
    """What is shown is not cut: who, which program, how much."""
    state = json.loads(beowire("status", "--json", BEOWIRE_STATUS=str(place)).output)
    shown = io.StringIO()
    Console(file=shown, width=width).print(tables.endpoints(state))
    assert f":{waiting}" in shown.getvalue()
    assert "\u2026" not in shown.getvalue()
    head = shown.getvalue().splitlines()[1]
    assert all(f" {name} " in head for name in ("endpoint", "program", "out", "in", "waits"))
    assert ("messages/s" in head) == whole


def test_watch_on_a_terminal_ends_by_ctrl_c(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "status", "--watch") as terminal:
        terminal.expect("endpoint")
        time.sleep(1.0)
        terminal.press_ctrl_c()
        assert terminal.wait() == 0, terminal.output
        assert "Traceback" not in terminal.output


def agent(directory: Path, text: str) -> str:
    """A command that stands in for ssh: AGENT HOST COMMAND."""
    file = directory / "agent.sh"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_hosts_are_asked_and_those_that_do_not_answer_are_named(
    place: Path, waiting: int, tmp_path: Path
) -> None:
    ssh = agent(
        tmp_path,
        'case $1 in good) shift; exec sh -c "$*";; *) echo no way >&2; exit 255;; esac',
    )
    arguments = ["status", "--json", "--hosts", "good,bad", "--ssh", ssh]
    answer = beowire(*arguments, *PATIENTLY, BEOWIRE_STATUS=str(place))
    assert answer.status == 0
    told = json.loads(answer.output)
    assert told["nodes"] == ["good"]
    assert told["unreached"] == {"bad": "it is not reached: no way"}
    assert [each["pid"] for each in told["endpoints"]] == [waiting]
    assert [each["node"] for each in told["endpoints"]] == ["good"]
    assert "bad: it is not reached: no way" in answer.errors


def test_a_host_that_is_slow_is_not_waited_for(tmp_path: Path) -> None:
    ssh = agent(tmp_path, "exec sleep 100")
    answer = beowire("status", "--json", "--hosts", "one", "--ssh", ssh, "--timeout", "1")
    assert json.loads(answer.output)["unreached"] == {"one": "no answer within 1 s"}


@pytest.mark.parametrize("said", ["", "nonsense", "[]", '{"form": 99}', '{"form": 1}'])
def test_what_a_host_says_is_not_believed(tmp_path: Path, said: str) -> None:
    ssh = agent(tmp_path, f"printf '%s' '{said}'")
    answer = beowire("status", "--json", "--hosts", "one", "--ssh", ssh, *PATIENTLY)
    assert answer.status == 0, answer.errors
    assert list(json.loads(answer.output)["unreached"]) == ["one"]


def test_an_answer_without_end_is_not_read(tmp_path: Path) -> None:
    ssh = agent(tmp_path, "exec yes")
    answer = beowire("status", "--json", "--hosts", "one", "--ssh", ssh, *PATIENTLY)
    assert json.loads(answer.output)["unreached"] == {"one": "it tells more than 32 MiB"}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_of_json_is_not_passed_on(tmp_path: Path, number: str) -> None:
    """Whoever reads our JSON need not know of such."""
    told = {"form": 1, "endpoints": [], "processes": {}, "kernel": "@"}
    file = tmp_path / "answer"
    file.write_text(json.dumps(told).replace('"@"', f'{{"sockets": [], "new": {number}}}'))
    ssh = agent(tmp_path, f"cat {file}")
    answer = beowire("status", "--json", "--hosts", "one", "--ssh", ssh, *PATIENTLY)
    assert json.loads(answer.output)["unreached"] == {"one": "it tells what makes no sense"}
    file.write_text(json.dumps(told).replace('"@"', '{"sockets": [], "new": 1e99}'))
    answer = beowire("status", "--json", "--hosts", "one", "--ssh", ssh, *PATIENTLY)
    assert json.loads(answer.output)["unreached"] == {}


@pytest.mark.parametrize("depth", [60, 100_000])
@pytest.mark.parametrize("options", [["--json"], []])
def test_an_answer_of_any_depth_is_refused(tmp_path: Path, depth: int, options: list[str]) -> None:
    told = {"form": 1, "endpoints": [], "processes": {}, "kernel": "@"}
    file = tmp_path / "answer"
    file.write_text(json.dumps(told).replace('"@"', "[" * depth + "]" * depth))
    ssh = agent(tmp_path, f"cat {file}")
    answer = beowire("status", *options, "--hosts", "one", "--ssh", ssh, *PATIENTLY)
    assert answer.status == 0, answer.errors
    assert "one: " in answer.errors


def test_a_job_is_not_looked_for_in_what_makes_no_sense(tmp_path: Path) -> None:
    process = {"state": ["T"], "slurm": "4711", "job": [], "rank": "x", "frozen": 0}
    told = {"form": 1, "endpoints": [], "processes": {"7": process}, "kernel": None}
    file = tmp_path / "answer"
    file.write_text(json.dumps(told))
    ssh = agent(tmp_path, f"cat {file}")
    answer = beowire("status", "--job", str(1 << 30), "--hosts", "one", "--ssh", ssh, *PATIENTLY)
    assert answer.status == 1
    assert "No process of a job" in answer.errors
    answer = beowire("status", "--json", "--hosts", "one", "--ssh", ssh, *PATIENTLY)
    assert json.loads(answer.output)["unreached"] == {"one": "it tells what makes no sense"}


def test_one_cluster_at_a_time() -> None:
    answer = beowire("status", "--hosts", "a", "--lab", "b")
    assert answer.status == 1
    assert "not both" in answer.errors
