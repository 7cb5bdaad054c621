# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where a guest's kernel says that text lies: what is counted of it, and a guest of two nodes."""

import os
import time
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.evidence.experiment import CannotRunError, Context
from beowire.evidence.experiments import text
from beowire.evidence.registry import ENTRIES
from beowire.vm import kernels

LIBRARY = "/usr/lib/beowire/libbeowire-replicate.so"
AREAS = {
    "1000": ("r-xp", "/usr/bin/beowire-activation"),
    "2000": ("r--p", "/usr/bin/beowire-activation"),
    "3000": ("r-xp", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
    "4000": ("r-xp", "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
    "5000": ("r-xp", LIBRARY),
    "6000": ("rw-p", ""),
    "7000": ("r-xp", "[vdso]"),
}


def process(name: str, pages: dict[str, str]) -> str:
    """What the guest tells of a process: its areas, and where the pages of these lie."""
    lines = [
        f"{name} area {start}-{int(start, 16) + 0x1000:x} {rights} 00000000 00:1f 77   {file}"
        for start, (rights, file) in AREAS.items()
    ]
    lines += [f"{name} pages {start} default file=/x {told}" for start, told in pages.items()]
    return "\n".join(lines)


NEAR = {
    "1000": "mapped=1030 N1=1030 kernelpagesize_kB=4",
    "2000": "mapped=9 N0=9 kernelpagesize_kB=4",
    "3000": "mapped=100 N1=100 kernelpagesize_kB=4",
    "4000": "mapped=30 N0=30 kernelpagesize_kB=4",
    "5000": "mapped=4 N0=4 kernelpagesize_kB=4",
    "6000": "anon=7 dirty=7 N0=7 kernelpagesize_kB=4",
}
FAR = {**NEAR, "1000": "mapped=1030 N0=1000 N1=30 kernelpagesize_kB=4"}


def test_text_alone_is_counted() -> None:
    told = "\n".join(
        [
            *(process(f"files{node}", FAR) for node in (0, 1)),
            *(process(f"copies{node}", NEAR) for node in (0, 1)),
        ]
    )
    found = text.counted(told, 2)
    assert found["copies", 1] == text.Pages(near=1130, far=0, left=34)
    assert found["files", 1] == text.Pages(near=130, far=1000, left=34)
    # on node 0 what lies on node 1 is far, and what stays is near
    assert found["copies", 0] == text.Pages(near=34, far=1130, left=0)


def test_a_process_of_which_nothing_is_told_is_a_failure() -> None:
    told = "\n".join(process(f"{way}0", NEAR) for way in ("files", "copies"))
    with pytest.raises(BeowireError, match="nothing of files on node 1"):
        text.counted(told, 2)


def test_who_may_not_read_the_machine_s_files_cannot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    context = Context(lambda _: None, tmp_path, time.monotonic() + 600)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CannotRunError, match="as root does"):
        text.text_pages({"nodes": 2}, context)


@pytest.mark.skipif(os.geteuid() != 0, reason="the guest reads all files of the host as root")
def test_in_a_guest_of_two_nodes_copies_are_near_and_files_are_not(tmp_path: Path) -> None:
    try:
        kernels.find()
    except BeowireError as error:
        pytest.skip(f"no kernel for guests: {error}")
    context = Context(lambda _: None, tmp_path, time.monotonic() + 600)
    found = text.text_pages({"nodes": 2}, context)
    entry = next(each for each in ENTRIES if each.id == "E3-text")
    assert entry.criterion.judge(found).holds, found.curves
    # the kernel has one copy of the program's text: near for one of the two, and far for the other
    assert found.pick("near, files@most") >= text.HOT_PAGES
    assert set(entry.drawn) == set(found.curves)
