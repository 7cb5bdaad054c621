# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All packages on a minimal root of a release of Debian that systemd has started: the service and
the scripts of its package, a second start, and the kernel module by DKMS for that release's kernel.

Roots and builds are those of test_roots.py (package_roots.py). The tests of a release follow one
another.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import beowire_cli
import package_boot
import package_roots
import package_service
import pytest
import unit_machine as unit
from beowire import __version__, places
from package_boot import Booted
from package_build import earlier, repository
from package_life import NAMES, versions

pytestmark = [pytest.mark.long, pytest.mark.timeout(4 * 3600)]

FIRST = "systemd systemd-sysv libnss-systemd iproute2"
"""What a minimal root lacks to be started."""
EXPOSURE = 30
"""Tenths, at most, by systemd-analyze security of these releases."""


@dataclass(frozen=True)
class Root:
    """A release: what its machine wrote, and what is shared with it."""

    name: str
    directory: Path
    written: Path
    lines: list[str]

    @property
    def shared(self) -> Path:
        return self.directory / "shared"


@pytest.fixture(scope="module", params=package_roots.RELEASES)
def root(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Root]:
    """Packages are built, and systemd is installed."""
    lacking = beowire_cli.NO_NAMESPACES or package_roots.lacks() or package_boot.lacks()
    if lacking:
        pytest.skip(lacking)
    name = request.param
    base = tmp_path_factory.mktemp(name)
    with package_roots.machine(name, base / "builder", builds=True) as builder:
        package_roots.build(builder, base / "builder" / "shared", "2")
    built = base / "builder" / "shared" / "packages"
    (base / "older").mkdir()
    earlier(sorted(built.glob("*.deb")), base / "older", ("1", "2"))
    lines = repository(base / "repository", base / "older")
    repository(base / "newer", built)
    lines = [line.replace(str(base / "repository"), "/tmp/shared/repository") for line in lines]
    written = base / "written"
    written.mkdir()
    with package_roots.machine(name, base / "node", written=written) as node:
        shutil.copytree(base / "repository", base / "node" / "shared" / "repository")
        for line in lines:
            node.output(line)
        node.output("apt-get -q update", fetches=True)
        node.output(f"apt-get -q -y install --no-install-recommends {FIRST}", fetches=True)
        node.output("rm /usr/sbin/policy-rc.d")
    made = Root(name, base / "node", written, lines)
    shutil.copy(places.product("tests/user/actor"), made.shared)
    yield made
    shutil.rmtree(base)


@pytest.fixture
def machine(root: Root) -> Iterator[Booted]:
    """It has started as far as a server does."""
    with package_boot.booted(
        root.directory,
        package_roots.base(root.name),
        root.written,
        package_roots.PLACE / root.name / "archives",
        "multi-user.target",
    ) as made:
        yield made


def test_all_packages_are_installed(machine: Booted) -> None:
    wanted = " ".join(each for each in NAMES if each != "beowire-dkms")
    words = f"apt-get -q -y install --no-install-recommends {wanted}"
    machine.output(words, fetches=True)
    assert versions(machine) == dict.fromkeys(wanted.split(), f"{__version__}-1")
    machine.output(unit.PREPARED)
    package_service.check_installed(machine)
    assert machine.run("systemd-analyze verify --man=no beowired.service").stderr == ""
    words = f"systemd-analyze security --offline=yes --threshold={EXPOSURE}"
    machine.output(f"{words} {machine.property('FragmentPath')}")
    package_service.check_serves(machine)
    with unit.conversation(machine) as (one, other):
        unit.exchange(one, other, 1)
        assert unit.frames(one) > 0


def cable(machine: Booted) -> None:
    """To another node; the service waits for it."""
    assert package_service.active(machine) in ("activating", "deactivating")
    machine.output(f"ip netns add far; {unit.CABLE}")
    machine.until("systemctl is-active beowired", "active")


def test_an_enabled_service_is_there_after_the_next_start(root: Root, machine: Booted) -> None:
    """Its interface comes when all has started already."""
    cable(machine)
    shutil.rmtree(root.shared / "repository")
    shutil.copytree(root.directory.parent / "newer", root.shared / "repository")
    upgrade = "apt-get -q -y upgrade"
    machine.output("apt-get -q update", fetches=True)
    package_service.check_upgrade(machine, upgrade)
    package_service.check_upgrade_of_a_stopped(
        machine, "apt-get -q -y install --reinstall beowired"
    )


def test_a_purge_leaves_nothing(machine: Booted) -> None:
    cable(machine)
    names = " ".join(each for each in NAMES if each not in ("beowired", "beowire-dkms"))
    machine.output(f"apt-get -q -y purge {names}")
    package_service.check_removal(machine)


def test_dkms_builds_the_module_for_the_releases_kernel(machine: Booted) -> None:
    """As soon as the package is installed, beside that kernel's headers."""
    wanted = "beowire-dkms linux-headers-amd64"
    machine.output(f"apt-get -q -y install --no-install-recommends {wanted}", fetches=True)
    kernel = machine.output("ls /lib/modules | tail -n 1").strip()
    told = machine.output("dkms status beowire")
    assert f"beowire/{__version__}, {kernel}, x86_64: installed" in told
    machine.output(f"test -n \"$(find /lib/modules/{kernel}/updates -name 'beowire.ko*')\"")
    machine.output("apt-get -q -y purge beowire-dkms")
    assert machine.output("find /lib/modules /usr/src /var/lib/dkms -name '*beowire*'") == ""
