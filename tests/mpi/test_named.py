# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A hostile peer that a libfabric program has named: it is in the program's address vector.

What holds back all of those together that nobody has named does not hold for it, but bounds of its
own (docs/security.md, "A malicious peer").
"""

import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from beowire import places
from beowire.run.cluster import Cluster
from beowire.run.launch import Job
from beowire.run.path import JobRecord, read_endpoints
from mpi_hostile import Build, Way, beside, member, release, sanitized
from mpi_lab import lab_behind
from mpi_programs import HANG_S, MEBI

FRAMES = 100_000
"""Hostile frames that the programs must have been given."""
PARTS, PART_FRAMES = 10, 1_000_000
"""Of the long tests: each part is a run of its own, with a seed of its own."""
UNREAD_MAX, UNREAD_EACH = MEBI, 2048
"""What may lie unread before peers are told to send envelopes only, and messages of one of them."""
NAMED_KIB = 2 * (1 + 32) * 1024 * 3 // 2
"""Two are named at a time, and each may leave so much unread: what pressure begins at, and what it
may have sent ahead; messages of this hostile one take up to half as much more as they have bytes.
Answers kept for one (8 MiB), its requests (1024) and guesses (64) are far below."""
UNNAMED_KIB = (1 + 128) * 1024
"""What those may leave together that are taken out of the address vector."""
WIRE_KIB = (1 + 16) * 1024
"""What the engine of the victim holds of parts of messages that do not come to an end."""
KINDS = ("peers_given_up", "key_guesses", "writes_refused", "malformed")
"""Counters of what a named peer may do so often, and no more."""
BOUNDS = (
    "is given up, since it sends more than may wait for a receive",
    "is given up, since it names memory by keys that nobody has",
)
"""What the victim says when a named peer has come to them."""
IN_VAIN = 12
"""Jobs after which it must have."""


@dataclass
class Named:
    """Runs the two programs again and again, of which the first has named the hostile one."""

    told: Path
    """The file with its address."""
    sums: Counter[str] = field(default_factory=Counter)
    """Of all runs: the counters, and what the first one says of the hostile one."""

    def run(self, cluster: Cluster, build: Build, way: Way) -> tuple[JobRecord, str]:
        """Runs the two to their `ok`."""
        lab = lab_behind(cluster)
        program = str(places.product("tests/mpi/named"))
        with tempfile.TemporaryDirectory() as name:
            environment = {
                **os.environ,
                "FI_PROVIDER_PATH": build.provider_dir or str(places.provider_dir()),
                "FI_PROVIDER": "beowire",
                "BEOWIRE_STATS": name,
                "BEOWIRE_DEAD_TIMEOUT": "6",
                "BEOWIRE_UNEXPECTED_MAX": str(UNREAD_MAX),
                "BEOWIRE_UNEXPECTED_EACH": str(UNREAD_EACH),
                **build.environment,
                **way.environment(),
            }
            arguments = [name, str(build.rounds)]
            sides = [
                subprocess.Popen(
                    ["sh", str(lab.enter_path(node)), program, str(number), *arguments, *told],
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                )
                for number, node, told in zip(
                    (0, 1), lab.node_names()[:2], ([str(self.told)], []), strict=True
                )
            ]
            said = self._ends(sides)
            endpoints = read_endpoints(Path(name))
            self._add([json.loads(each.read_text()) for each in Path(name).glob("*.json")], said)
        record = JobRecord(Job([program], 2, "beowire"), program, 0, False, 0, 0)
        record.endpoints.extend(endpoints)
        assert len(endpoints) == 2
        assert record.sum("tx_payload", "packet", "udp") > MEBI
        assert all(each.keyed == bool(way.key) for each in endpoints)
        assert all(each.encrypted == way.encrypt for each in endpoints)
        return record, "".join(said)

    def _ends(self, sides: list["subprocess.Popen[str]"]) -> list[str]:
        try:
            said = [each.communicate(timeout=HANG_S)[0] for each in sides]
        finally:
            for each in sides:
                if each.poll() is None:
                    each.kill()
                    print(each.communicate()[0])
        for each, text in zip(sides, said, strict=True):
            assert each.returncode == 0, said
            assert "ok named" in text, said
        return said

    def _add(self, told: list[dict[str, int]], said: list[str]) -> None:
        for each in told:
            self.sums.update({kind: each[kind] for kind in KINDS})
        words = said[0].split("ok named: ")[1].replace(",", "").split()
        self.sums.update(
            {what: int(count) for count, what in zip(words[::2], words[1::2], strict=True)}
        )


def flood_named(cluster: Cluster, build: Build, way: Way, frames: int, told: Path) -> None:
    """No byte between the other two is wrong, whatever the hostile one says."""
    named = Named(told)
    bound = build.alone_kib + NAMED_KIB + UNNAMED_KIB + WIRE_KIB
    jobs, (sent, changed, contacts) = beside(
        cluster,
        replace(build, resident_kib=bound),
        way,
        lambda seed: member(seed, way, f"told={told}"),
        lambda jobs: (
            jobs.heard >= frames
            and (all(each in jobs.said for each in BOUNDS) or jobs.runs > IN_VAIN)
        ),
        job=named.run,
        name="named",
    )
    print(dict(named.sums))
    for bound_reached in BOUNDS:
        assert bound_reached in jobs.said
    assert changed > sent // 8
    assert contacts >= jobs.runs
    assert named.sums["names"] >= jobs.runs
    for what in ("got", "sends", "errors", *KINDS):
        assert named.sums[what], what
    assert "\033" not in jobs.said
    assert "\007" not in jobs.said


def ways(links: str, key: str) -> list[Way]:
    """Without a key, with one, and with encryption."""
    return [
        Way(links, links),
        Way(f"{links}, key", links, key),
        Way(f"{links}, encrypted", links, key, True),
    ]


@pytest.mark.parametrize("links", ["packet", "udp"])
@pytest.mark.parametrize("kind", [0, 1, 2], ids=["plain", "key", "encrypted"])
def test_a_named_peer_does_no_harm(
    kind: int, links: str, key: str, three: Cluster, tmp_path: Path
) -> None:
    """It is received from and sent to, leaves messages unread, asks for memory, and changes its
    frames."""
    way = ways(links, key)[kind]
    flood_named(three, replace(release(), rounds=1500), way, FRAMES, tmp_path / "told")


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, PARTS + 1))
@pytest.mark.parametrize("links", ["packet", "udp"])
@pytest.mark.parametrize("build", [release, sanitized])
def test_named_for_long(
    build: Callable[[], Build], links: str, part: int, key: str, three: Cluster, tmp_path: Path
) -> None:
    """Part by part, as many as there is time for."""
    assert part
    longer = replace(build(), rounds=20 * build().rounds)
    for way in ways(links, key):
        flood_named(three, longer, way, PART_FRAMES, tmp_path / "told")
