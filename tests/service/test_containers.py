# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What containers can use: processes with the capabilities and in the namespaces that container
run-times give them by default, as docs/containers.md tells."""

import errno
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from beowire import places
from served import STRANGER, USER, Service, client
from test_served import by_raw_frames, exchange, opened
from user_actor import actor

DOCKER = "chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw"
DOCKER += " sys_chroot mknod audit_write setfcap"
"""Docker's, and containerd's for Kubernetes, unless somebody says otherwise; capabilities(7)."""
PODMAN = "chown dac_override fowner fsetid kill net_bind_service setfcap setgid setpcap setuid"
PODMAN += " sys_chroot"
BOTH = "local,packet"
DOCUMENT = places.source("docs/containers.md")
OWN_MEMORY = ["sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
NAMESPACES = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--mount-proc"]
ROOTLESS = ["unshare", "--user", "--map-root-user", "--mount", *OWN_MEMORY]
"""Root in a namespace of users of its own, whose network is another one's."""


def limited(capabilities: str, user: int) -> list[str]:
    """What executes a command with no more than these, as run-times do."""
    caps = ",".join(["-all", *(f"+{each}" for each in capabilities.split())])
    number = str(user)
    words = ["setpriv", "--reuid", number, "--regid", number, "--clear-groups", "--no-new-privs"]
    return [*words, "--bounding-set", caps, "--inh-caps", caps, "--ambient-caps", caps]


def links(service: Service, *words: str, mounted: bool) -> dict[str, str]:
    """Which links the library tells of to such a process: `usable`, or why not."""
    program = service.directory / "beowire-info"
    if not program.exists():  # users may not look into the directory of the build
        shutil.copy(places.product("programs/beowire-info"), program)
        shutil.copy(places.product("hosts/user/libbeowire.so.1"), service.directory)
        program.chmod(0o755)
    name = str(service.socket if mounted else service.directory / "not-mounted")
    variables = {"LD_LIBRARY_PATH": str(service.directory), "BEOWIRE_SERVICE": name}
    done = subprocess.run(
        ["ip", "netns", "exec", service.node, *words, str(program), "--json"],
        capture_output=True,
        text=True,
        check=True,
        env={key: value for key, value in os.environ.items() if "BEOWIRE" not in key} | variables,
    )
    told = json.loads(done.stdout)["links"]
    return {name: "usable" if one["usable"] else one["why"] for name, one in told.items()}


@pytest.mark.parametrize(
    ("words", "mounted", "packet"),
    [
        pytest.param(limited(DOCKER, 0), False, "usable", id="docker"),
        pytest.param(limited(DOCKER, USER), False, "usable", id="docker-user-with-ambient"),
        pytest.param(
            limited(DOCKER.replace(" net_raw", ""), 0), False, "CAP_NET_RAW", id="docker-drop"
        ),
        pytest.param(limited(PODMAN, 0), False, "CAP_NET_RAW", id="podman"),
        pytest.param(limited("", USER), False, "CAP_NET_RAW", id="restricted"),
        pytest.param(limited("", USER), True, "usable", id="restricted-with-service"),
        pytest.param(limited("", STRANGER), True, "users", id="stranger-with-service"),
    ],
)
def test_which_links_a_container_has(
    service: Service, words: list[str], mounted: bool, packet: str
) -> None:
    """In namespaces of its own of mounts, processes and memory, and in the node's network."""
    found = links(service, *NAMESPACES, *OWN_MEMORY, *words, mounted=mounted)
    assert found["local"] == found["udp"] == "usable", found
    assert packet in found["packet"], found


@pytest.mark.parametrize(("mounted", "packet"), [(False, "CAP_NET_RAW"), (True, "usable")])
def test_root_of_a_rootless_container_is_no_root(
    service: Service, mounted: bool, packet: str
) -> None:
    """The service sees the user who started it."""
    found = links(service, *limited("", USER), *ROOTLESS, mounted=mounted)
    assert packet in found["packet"], found
    assert found["udp"] == "usable"


def mounted_at(what: Path, make: str) -> list[str]:
    """What starts a rootless container that has this at /mnt/run and nothing else of it."""
    script = "mount -t tmpfs -o mode=755 none /mnt"
    script += f" && {make} /mnt/run && mount --bind {what} /mnt/run"
    words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    return [*words, f'{script} && exec "$@"', "sh"]


def test_a_rootless_container_has_frames_by_the_mounted_directory(
    service: Service, nodes: tuple[str, str]
) -> None:
    """Though it sees root, whom the service runs as, under the number of nobody."""
    words = mounted_at(service.directory, "mkdir")
    name = "/mnt/run/beowired.sock"
    with (
        client(service, within=words, BEOWIRE_SERVICE=name) as one,
        actor(nodes[1], "peer", BEOWIRE_LINKS="packet") as peer,
    ):
        exchange(opened(one), opened(peer))
        assert by_raw_frames(one)


def test_a_socket_mounted_alone_is_not_trusted(service: Service) -> None:
    """Beside it lies a directory of the container's, whose owner is not the service's."""
    words = mounted_at(service.socket, "touch")
    with client(service, within=words, BEOWIRE_SERVICE="/mnt/run") as one:
        assert "is not its directory's owner" in one.open_failure()["why"]


def test_a_container_without_a_network_speaks_by_the_services_frames(
    service: Service, nodes: tuple[str, str]
) -> None:
    alone = ["unshare", "--user", "--map-current-user", "--net"]
    with (
        client(service, within=alone) as one,
        actor(nodes[1], "peer", BEOWIRE_LINKS="packet") as peer,
    ):
        exchange(opened(one), opened(peer))
        assert by_raw_frames(one)


def container(*networks: str) -> list[str]:
    """The words that start in namespaces of mounts, processes and memory of its own, as a rootless
    run-time makes them, and of networks if asked for."""
    words = ["unshare", "--user", "--map-root-user", "--mount", "--ipc", "--pid", "--fork"]
    words += [*networks, "--mount-proc", "sh", "-c"]
    return [*words, 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]


def test_containers_in_one_network_share_memory(service: Service) -> None:
    """The local link finds a peer by a name of the network's, and needs no directory in common."""
    with (
        client(service, within=container(), BEOWIRE_LINKS=BOTH) as one,
        client(service, within=container(), BEOWIRE_LINKS=BOTH) as other,
    ):
        exchange(opened(one), opened(other))
        used = {name for name, told in one.stats()["links"].items() if told["rx_payload"]}
        assert used == {"local"}


def test_the_service_does_not_join_containers_of_one_node(service: Service) -> None:
    """What it sends leaves the node: to one another they need a network in common."""
    with (
        client(service, within=container("--net"), BEOWIRE_LINKS=BOTH) as one,
        client(service, within=container("--net"), BEOWIRE_LINKS=BOTH) as other,
    ):
        address = opened(other).addr  # type: ignore[attr-defined]
        opened(one)
        assert one.ask(f"peer {address}", "peer")["result"] == -errno.EHOSTUNREACH


def test_the_document_names_these_capabilities() -> None:
    text = DOCUMENT.read_text()
    named = re.search(r"^Docker's default: (.+)\.$", text, re.MULTILINE)
    assert named is not None
    assert named[1].lower().replace("`", "").split(", ") == sorted(DOCKER.split())
