# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A third node of the segment speaks to a running job to which it does not belong."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from beowire.run.cluster import Cluster
from mpi_hostile import Build, Way, beside, member, release, sanitized

FRAMES = 100_000
"""Hostile frames that jobs' ranks must have looked at."""
PARTS, PART_FRAMES = 10, 1_000_000
"""Of the long tests: each part is a run of its own, with a seed of its own."""
MEMBER_KIB = (128 + 64 + 32) * 1024
"""What peers may fill: by messages that they begin, by those that nobody receives, and beyond that
until one of them feels the pressure."""


def flood(cluster: Cluster, build: Build, way: Way, frames: int) -> None:
    """Every byte is right, and nothing that is heard is believed."""
    jobs, (raw, udp, challenges, answers) = beside(
        cluster,
        build,
        way,
        lambda seed: ("stranger", str(seed)),
        lambda jobs: jobs.seen >= frames,
    )
    assert raw > frames // 10 or way.links == "udp"
    assert min(udp, jobs.heard_by_udp) > frames // 10 or way.links == "packet"
    assert challenges > frames // 1000
    if way.key:
        assert answers == 0
    else:
        assert answers > frames // 1000  # it was made a peer
    assert "\033" not in jobs.said
    assert "\007" not in jobs.said
    for word in ("stranger", "is gone", "install the same Beowire"):
        assert word not in jobs.said


def flood_member(cluster: Cluster, build: Build, way: Way, frames: int) -> None:
    """Every byte is right, whatever the member says."""
    jobs, (sent, changed, contacts) = beside(
        cluster,
        replace(build, resident_kib=build.resident_kib + MEMBER_KIB),
        way,
        lambda seed: member(seed, way),
        lambda jobs: jobs.heard >= frames,
    )
    assert changed > sent // 4
    assert contacts > jobs.runs
    assert "\033" not in jobs.said
    assert "\007" not in jobs.said


def longer(build: Build) -> Build:
    """Of jobs that last until a member has filled all that it may fill."""
    return replace(build, rounds=20 * build.rounds)


def test_a_stranger_does_no_harm(three: Cluster) -> None:
    """HELLOs of nobody with cookies and without, old frames once more, changed frames with right
    checksums, REFUSE and BYE in a peer's name."""
    flood(three, release(), Way("all links"), FRAMES)


@pytest.mark.parametrize("links", ["packet", "udp"])
def test_a_stranger_without_the_key_does_no_harm(links: str, key: str, three: Cluster) -> None:
    """The same to a job whose cluster has a key."""
    flood(three, release(), Way(f"{links}, key", links, key), FRAMES)


@pytest.mark.parametrize("links", ["packet", "udp"])
@pytest.mark.parametrize("kind", ["", "key", "encrypted"])
def test_a_member_does_no_harm(kind: str, links: str, key: str, three: Cluster) -> None:
    """An engine that is in the cluster and not in the job: messages of any content, and each of
    its frames repeated, and changed with right checksums, tags and seals."""
    way = Way(f"{links}, {kind}", links, key if kind else "", kind == "encrypted")
    flood_member(three, replace(release(), rounds=1500), way, FRAMES)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, PARTS + 1))
@pytest.mark.parametrize("build", [release, sanitized])
def test_a_stranger_for_long(build: Callable[[], Build], part: int, three: Cluster) -> None:
    """Part by part, as many as there is time for."""
    assert part
    flood(three, build(), Way("all links"), PART_FRAMES)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, PARTS + 1))
@pytest.mark.parametrize("links", ["packet", "udp"])
@pytest.mark.parametrize("build", [release, sanitized])
def test_both_for_long(
    build: Callable[[], Build], links: str, part: int, key: str, three: Cluster
) -> None:
    """Without a key and with one, who has it and who has it not, with encryption and without."""
    assert part
    for way in (Way(links, links), Way(f"{links}, key", links, key)):
        flood(three, build(), way, PART_FRAMES)
        flood_member(three, longer(build()), way, PART_FRAMES)
    encrypted = Way(f"{links}, encrypted", links, key, True)
    flood_member(three, longer(build()), encrypted, PART_FRAMES)
