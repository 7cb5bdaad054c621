# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages that a release of Debian built with its own compiler and Python, installed on a minimal
root of that release as docs/install.md says, used by a first MPI job, upgraded and removed.

Roots are made by mmdebstrap and kept (package_roots.py). All that is fetched is the distribution's,
and Python packages for the builds. The tests of a release follow one another on one machine.
"""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import beowire_cli
import package_roots
import pytest
from beowire import __version__
from package_build import earlier, repository
from package_life import LAB, SETTINGS, by_beowire, openmpi, versions
from package_machine import Machine

pytestmark = [pytest.mark.long, pytest.mark.timeout(4 * 3600)]

WANTED = ("beowire", "openmpi-beowire")
"""What a user names; the provider and the library come with them."""
INSTALLED = {*WANTED, "libbeowire1", "libfabric-beowire"}
OF_THE_DISTRIBUTION = (
    *("etc/ld.so.cache", "usr/sbin/policy-rc.d"),
    *("var/cache/", "var/log/", "var/lib/apt/", "var/lib/dpkg/"),
    *("etc/group", "etc/gshadow", "etc/hosts"),
)
"""Where the distribution's tools keep their own records, and what package_machine.py wrote; the
group of ssh, and /etc/hosts, over which a lab was."""
KEPT = re.compile("/(add|del)(user|group)", re.IGNORECASE)
"""The distribution's packages that apt keeps once a dependency has brought them."""


@dataclass(frozen=True)
class Root:
    """A release, what it built, and a machine on which that is installed."""

    name: str
    node: Machine
    shared: Path
    lines: list[str]
    complaints: list[str]
    """The release's own checker's."""


def checked(builder: Machine) -> list[str]:
    words = "lintian --allow-root --tag-display-limit 0 /tmp/shared/packages/*.deb"
    said = builder.run(words).stdout.splitlines()
    return [line for line in said if line.startswith(("E:", "W:"))]


@pytest.fixture(scope="module", params=package_roots.RELEASES)
def root(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Root]:
    if lacking := beowire_cli.NO_NAMESPACES or package_roots.lacks():
        pytest.skip(lacking)
    name = request.param
    base = tmp_path_factory.mktemp(name)
    with package_roots.machine(name, base / "builder", builds=True) as builder:
        package_roots.build(builder, base / "builder" / "shared", "2")
        complaints = checked(builder)
    built = base / "builder" / "shared"
    (base / "older").mkdir()
    earlier(sorted((built / "packages").glob("*.deb")), base / "older", ("1", "2"))
    lines = repository(base / "repository", base / "older")
    with package_roots.machine(name, base / "node") as node:
        shared = base / "node" / "shared"
        for program in ("pi", "onesided"):
            shutil.copy(built / program, shared)
        shutil.move(base / "repository", shared / "repository")
        repository(base / "newer", built / "packages")
        told = [line.replace(str(base / "repository"), "/tmp/shared/repository") for line in lines]
        yield Root(name, node, shared, told, complaints)


def test_the_releases_own_checker_has_no_complaint(root: Root) -> None:
    assert root.complaints == []


def test_two_commands_install_it(root: Root) -> None:
    for line in root.lines:
        root.node.output(line)
    root.node.output("apt-get -q update", fetches=True)
    wanted = f"apt-get -q -y install --no-install-recommends {' '.join(WANTED)}"
    root.node.output(wanted, fetches=True)
    assert versions(root.node) == dict.fromkeys(INSTALLED, f"{__version__}-1")


def test_the_command_works_with_the_releases_python(root: Root) -> None:
    assert root.node.output("beowire --version") == f"beowire {__version__}\n"
    assert json.loads(root.node.output("beowire info --json"))
    assert json.loads(root.node.output("beowire status --json")) is not None
    doctor = root.node.run("beowire doctor")
    assert "looked at" in doctor.stdout, doctor.stderr
    assert "Traceback" not in doctor.stderr


def test_a_first_job_goes_over_beowire(root: Root) -> None:
    root.node.output(f"beowire lab up {LAB} --nodes 2")
    release = int(openmpi(root.node).split(".")[0])
    assert by_beowire(root.node, release=release) > 0
    told = json.loads(root.node.output("beowire info --mpi --json"))
    chosen = next(each for each in told if each["mpi"].startswith("Open MPI"))
    assert chosen["transport"] == "beowire", chosen
    assert SETTINGS in chosen["why"]


def test_windows_of_memory_go_over_beowire(root: Root) -> None:
    release = int(openmpi(root.node).split(".")[0])
    assert by_beowire(root.node, program="onesided", says="ok onesided", release=release) > 0


def test_an_upgrade_keeps_what_was_changed(root: Root) -> None:
    root.node.output(f"beowire lab down {LAB}")
    root.node.output(f"sed -i 's/^mtl/#mtl/' {SETTINGS}")
    shutil.rmtree(root.shared / "repository")
    shutil.copytree(root.shared.parents[1] / "newer", root.shared / "repository")
    root.node.output("apt-get -q update", fetches=True)
    root.node.output("apt-get -q -y upgrade", fetches=True)
    assert versions(root.node) == dict.fromkeys(INSTALLED, f"{__version__}-2")
    assert "#mtl = ofi" in root.node.output(f"cat {SETTINGS}")


def test_nothing_is_left_after_a_purge(root: Root) -> None:
    root.node.output(f"apt-get -q -y remove {' '.join(WANTED)}")
    assert SETTINGS.lstrip("/") in root.node.written()
    root.node.output(f"apt-get -q -y purge {' '.join(INSTALLED)}")
    root.node.output("apt-get -q -y autoremove --purge")
    assert versions(root.node) == {}
    root.node.output("rm /etc/apt/sources.list.d/beowire.list /usr/share/keyrings/beowire.gpg")
    left = [each for each in root.node.written() if not each.startswith(OF_THE_DISTRIBUTION)]
    left = [each for each in left if not KEPT.search(each)]
    assert left == []
    assert root.node.directories() == []
    assert root.node.output("find /var/lib/dpkg/info -name '*beowire*'") == ""
