# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""In a guest of two NUMA nodes each process executes from its own node."""

import os
import re
from pathlib import Path

import pytest
from beowire.replicate import command
from beowire.vm import machine
from replicated import subject

GUEST = Path(__file__).with_name("on_nodes.sh")


def pages(text: str, who: str) -> dict[int, int]:
    """By node: pages of text that a process executes, but for what is left alone."""
    found: dict[int, int] = {}
    for line in re.findall(rf"^{who}: (.*)$", text, re.MULTILINE):
        if "beowire-node" in line:
            for node, count in re.findall(r" N(\d+)=(\d+)", line):
                found[int(node)] = found.get(int(node), 0) + int(count)
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="the guest reads all files of the host as root")
def test_each_process_has_its_text_on_its_node(tmp_path: Path) -> None:
    words = ["/bin/sh", str(GUEST), subject(), *command.line([subject(), "wait"], "small")]
    output = tmp_path / "output"
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
    try:
        outcome = machine.run(machine.Guest(words, memory_mb=768, nodes=2), descriptor)
    finally:
        os.close(descriptor)
    text = output.read_text()
    assert outcome.exit_status == 0, text + "\n".join(outcome.complaints)
    for node in (0, 1):
        here = pages(text, f"copied{node}")
        assert set(here) == {node}, text
        assert here[node] > 300, text  # the C library alone has that many
    # without copies the page cache has one, on one node, for both
    plain = [pages_of_files(text, f"plain{node}") for node in (0, 1)]
    assert set(plain[0]) == set(plain[1]), text
    assert len(plain[0]) == 1, text


def pages_of_files(text: str, who: str) -> dict[int, int]:
    """By node: pages of the subject's own file."""
    found: dict[int, int] = {}
    for line in re.findall(rf"^{who}: (.*)$", text, re.MULTILINE):
        if "tests/replicate/subject" in line and "anon=" not in line:
            for node, count in re.findall(r" N(\d+)=(\d+)", line):
                found[int(node)] = found.get(int(node), 0) + int(count)
    return found
