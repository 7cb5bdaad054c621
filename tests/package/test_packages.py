# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is in the packages, what the distribution's own checker says of them, and the life of an
installation: from the repository onto a machine, used, upgraded, removed.

The tests follow one another on one machine (package_machine.py); the last one leaves nothing there.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import package_boot
import package_service
import pytest
import unit_machine
from beowire import __version__, places
from package_build import Packages
from package_life import LAB, NAMES, SETTINGS, by_beowire, versions
from package_machine import Machine, share

pytestmark = pytest.mark.timeout(1800)  # the packages are built first

OURS = "-o Dir::Etc::sourcelist=/etc/apt/sources.list.d/beowire.list -o Dir::Etc::sourceparts=-"
UNIT = "beowired.service"
OF_THE_DISTRIBUTION = (
    *("etc/ld.so.cache", "usr/sbin/policy-rc.d"),
    *("var/cache/", "var/log/", "var/lib/apt/", "var/lib/dpkg/", "var/lib/swcatalog/"),
)
"""Where the distribution's tools keep their own records, and what package_machine.py wrote."""
FILES = {
    "libbeowire1": ("libbeowire.so.1",),
    "libbeowire-dev": ("beowire.h", "libbeowire.so", "beowire.pc", "libbeowire.3.gz"),
    "libfabric-beowire": ("libfabric/libbeowire-fi.so", "libfabric/alone/libfabric.so.1"),
    "openmpi-beowire": ("bin/mpirun.beowire", "bin/mpiexec.beowire", "etc/beowire/openmpi.conf"),
    "beowire": (
        *("bin/beowire", "bin/beowire-info", "sbin/beowire-attach", "man1/beowire.1.gz"),
        *("bash-completion/completions/beowire", "zsh/vendor-completions/_beowire"),
        *("fish/vendor_completions.d/beowire.fish", "doc/beowire/examples/beowire.conf"),
    ),
    "beowired": (
        "sbin/beowired",
        "lib/systemd/system/beowired.service",
        "etc/beowire/beowired.conf",
    ),
    "beowire-sockets": ("beowire/libbeowire-sockets.so",),
    "beowire-dkms": ("dkms.conf", "engine/peer.c", "main.c", "Kbuild"),
}


def said(*words: str | Path) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_each_package_has_its_files(packages: Packages) -> None:
    named = {said("dpkg-deb", "--field", each, "Package").strip(): each for each in packages.newer}
    assert set(named) == set(FILES)
    for name, files in FILES.items():
        lines = said("dpkg-deb", "--contents", named[name]).splitlines()
        listed = [line.split()[5] for line in lines]
        for file in files:
            assert any(each.endswith(f"/{file}") for each in listed), (name, file)
        assert not any("__pycache__" in each or "/tests/" in each for each in listed), name


def test_no_compiler_is_needed_to_use_them(packages: Packages) -> None:
    for each in packages.newer:
        if "dkms" not in each.name:
            needed = said("dpkg-deb", "--field", each, "Depends")
            assert not any(word in needed for word in ("gcc", "qemu", "meson", "-dev")), each


def test_the_service_is_stopped_when_it_is_removed_and_only_then(
    packages: Packages, tmp_path: Path
) -> None:
    package = next(each for each in packages.newer if each.name.startswith("beowired_"))
    said("dpkg-deb", "--control", package, tmp_path / "control")
    scripts = {each.name: each.read_text() for each in (tmp_path / "control").iterdir()}
    assert executed(tmp_path, scripts, "prerm", "remove") == ["deb-systemd-invoke stop " + UNIT]
    assert "systemctl --system daemon-reload" in executed(tmp_path, scripts, "postrm", "remove")
    assert f"deb-systemd-helper purge {UNIT}" in executed(tmp_path, scripts, "postrm", "purge")
    assert executed(tmp_path, scripts, "prerm", "upgrade", "2") == []
    assert executed(tmp_path, scripts, "preinst", "upgrade", "1") == []
    upgraded = executed(tmp_path, scripts, "postinst", "configure", "1")
    assert f"deb-systemd-invoke start {UNIT}" in upgraded
    assert not [each for each in upgraded if each.split()[1] in ("restart", "try-restart")]


def executed(place: Path, scripts: dict[str, str], name: str, *arguments: str) -> list[str]:
    """What a script of the package would have systemd do: the commands that it calls are others
    here, which are written down and tell of success, and systemd is said to be there."""
    log = place / "log"
    log.write_text("")
    for command in ("deb-systemd-invoke", "deb-systemd-helper", "systemctl"):
        (place / command).write_text(f'#!/bin/sh\necho "${{0##*/}} $*" >>{log}\n')
        (place / command).chmod(0o755)
    text = scripts.get(name, "").replace("/run/systemd/system", str(place))
    text = text.replace("/usr/bin/deb-systemd-helper", "/bin/sh")
    words = ["sh", "-e", "-c", text, name, *arguments]
    subprocess.run(words, check=True, env={"PATH": f"{place}:/usr/bin:/bin"})
    return log.read_text().splitlines()


def test_lintian_has_no_complaint(packages: Packages) -> None:
    done = subprocess.run(
        ["lintian", "--allow-root", "--tag-display-limit", "0", *packages.newer],
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith(("E:", "W:"))]
    assert found == []
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_projects(packages: Packages) -> None:
    for each in packages.newer:
        assert said("dpkg-deb", "--field", each, "Version").strip() == f"{__version__}-2"


def use(node: Machine, repository: Path, lines: list[str]) -> None:
    """As the printed lines say, but for where the repository is seen from the machine."""
    for line in lines:
        node.output(line.replace(str(repository), "/tmp/shared/repository"))
    node.output(f"apt-get -q {OURS} update")


def install(node: Machine, repository: Path, lines: list[str]) -> None:
    use(node, repository, lines)
    node.output(f"apt-get -q -y {OURS} install --no-install-recommends {' '.join(NAMES)}")


@pytest.fixture(scope="module")
def installed(node: Machine, packages: Packages, room: Path) -> Machine:
    """The older packages are installed on it, and a program is there that was built elsewhere."""
    shutil.copytree(packages.older_repository, room / "shared" / "repository")
    share(room, places.example("pi"))
    share(room, places.product("tests/mpi/onesided"))
    assert not re.search("beowire", node.output("dpkg-query -W -f '${Package}\\n'"))
    install(node, packages.older_repository, packages.lines)
    return node


def test_all_packages_are_installed(installed: Machine) -> None:
    assert versions(installed) == dict.fromkeys(NAMES, f"{__version__}-1")


def test_the_command_works_without_the_checkout(installed: Machine) -> None:
    assert installed.run(f"test -e {places.root()}/beowire").returncode != 0
    assert installed.output("beowire --version") == f"beowire {__version__}\n"
    assert installed.output("beowire version") == f"beowire {__version__}\n"
    assert "COMMAND" in installed.output("beowire --help")
    assert json.loads(installed.output("beowire info --json"))
    assert json.loads(installed.output("beowire status --json")) is not None
    assert "looked at" in installed.run("beowire doctor").stdout
    switched = installed.output("beowire sockets -- sh -c 'echo $LD_PRELOAD'")
    assert re.fullmatch(r"/usr/lib/\S+/beowire/libbeowire-sockets\.so\n", switched)


def test_the_version_is_told_without_loading_the_command(installed: Machine) -> None:
    loaded = installed.output("python3 -X importtime -PS /usr/bin/beowire --version 2>&1")
    names = {line.rpartition("|")[2].strip() for line in loaded.splitlines() if "|" in line}
    assert "beowire" in names
    assert not names & {"typer", "rich", "beowire.cli", "site"}


def test_what_an_installation_lacks_is_said(installed: Machine) -> None:
    for words in ("test", "vm -- true", "package deb", "demo"):
        done = installed.run(f"beowire {words}")
        assert done.returncode == 1, words
        assert "is not part of an installation" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    installed.output("mv /usr/sbin/beowired /usr/sbin/elsewhere")
    done = installed.run("beowire lab up served --nodes 2 --service")
    installed.output("mv /usr/sbin/elsewhere /usr/sbin/beowired")
    assert done.returncode == 1
    assert "apt-get install beowired" in done.stderr
    installed.output("mkdir /tmp/lacking && printf 'N,time\n1,9\n2,5\n3,4\n4,3\n' >/tmp/runs.csv")
    hidden = "import sys; sys.modules['scipy'] = None"
    installed.output(f'echo "{hidden}" >/tmp/lacking/sitecustomize.py')
    done = installed.run("beowire model fit /tmp/runs.csv", PYTHONPATH="/tmp/lacking")
    assert done.returncode == 1
    assert done.stderr.endswith("apt-get install python3-scipy\n"), done.stderr


def test_a_repository_is_made_without_a_checkout(installed: Machine) -> None:
    words = "package repository /tmp/made --packages /tmp/shared/repository"
    assert "is not part of" in installed.run("beowire package repository /tmp/made").stderr
    assert "install -m 644 /tmp/made/beowire.gpg" in installed.output(
        f"beowire {words}", XDG_DATA_HOME="/tmp/keys"
    )
    installed.output("gpgv --keyring /tmp/made/beowire.gpg /tmp/made/InRelease")


@pytest.fixture(scope="module")
def cluster(installed: Machine) -> Machine:
    """Two nodes, in network namespaces on it."""
    installed.output(f"beowire lab up {LAB} --nodes 2")
    return installed


def test_a_plain_mpirun_goes_over_beowire(cluster: Machine) -> None:
    assert by_beowire(cluster) > 0
    told = json.loads(cluster.output("beowire info --mpi --json"))
    chosen = next(each for each in told if each["mpi"].startswith("Open MPI"))
    assert chosen["transport"] == "beowire"
    assert SETTINGS in chosen["why"]


def test_windows_of_memory_go_over_beowire(cluster: Machine) -> None:
    assert by_beowire(cluster, program="onesided", says="ok onesided") > 0


def test_one_user_switches_it_off(cluster: Machine) -> None:
    cluster.output("mkdir .openmpi && echo pml = ob1 >.openmpi/mca-params.conf")
    assert by_beowire(cluster) == 0
    told = json.loads(cluster.output("beowire info --mpi --json"))
    chosen = next(each for each in told if each["mpi"].startswith("Open MPI"))
    assert chosen["transport"] == "tcp"
    assert ".openmpi/mca-params.conf" in chosen["why"]
    cluster.output("rm -r .openmpi")
    assert by_beowire(cluster, "--mca pml ob1") == 0


def test_the_administrator_switches_it_off(cluster: Machine) -> None:
    """By the two lines that docs/install.md names; the third may stay."""
    text = places.source("docs/install.md").read_text()
    named = re.search(r"^\| all \| `#` before `(\w+)` and `(\w+)` in `(\S+)`", text, re.MULTILINE)
    assert named is not None
    assert named[3] == SETTINGS
    lines = f"{named[1]}|{named[2]}"
    cluster.output(f"cp {SETTINGS} /tmp/settings && sed -Ei 's/^({lines}) = /#&/' {SETTINGS}")
    assert cluster.output(f"grep -v ^# {SETTINGS}") == "osc = ^ucx\n"
    assert by_beowire(cluster) == 0
    cluster.output(f"cp /tmp/settings {SETTINGS}")


def test_run_uses_what_is_installed(cluster: Machine) -> None:
    words = f"beowire run --lab {LAB} -n 2 --transport beowire --prove"
    done = cluster.run(f"{words} -- /tmp/shared/pi --precision 1e-4")
    assert done.returncode == 0, done.stderr
    assert "proved: payload over Beowire" in done.stderr
    assert "WARNING" not in done.stderr
    assert str(places.root()) not in done.stderr


def test_a_node_without_the_provider_is_reached_by_tcp(cluster: Machine) -> None:
    cluster.output("mv /usr/lib/*-linux-*/libfabric /usr/lib/elsewhere")
    try:
        assert by_beowire(cluster) == 0
    finally:
        cluster.output("mv /usr/lib/elsewhere $(dirname /usr/lib/*-linux-*/beowire)/libfabric")


def test_an_upgrade_keeps_what_the_administrator_changed(
    cluster: Machine, packages: Packages, room: Path
) -> None:
    cluster.output(f"beowire lab down {LAB}")
    cluster.output("echo 'users = root' >>/etc/beowire/beowired.conf")
    cluster.output(f"sed -i 's/^mtl/#mtl/' {SETTINGS}")
    shutil.rmtree(room / "shared" / "repository")
    shutil.copytree(packages.newer_repository, room / "shared" / "repository")
    cluster.output(f"apt-get -q {OURS} update")
    cluster.output(f"apt-get -q -y {OURS} upgrade")
    assert versions(cluster) == dict.fromkeys(NAMES, f"{__version__}-2")
    assert "users = root" in cluster.output("cat /etc/beowire/beowired.conf")
    assert "#mtl = ofi" in cluster.output(f"cat {SETTINGS}")
    assert cluster.output("beowire --version") == f"beowire {__version__}\n"


def test_systemd_runs_the_service(packages: Packages, tmp_path: Path) -> None:
    """On a machine of its own, on which systemd is the first process."""
    if lacking := package_boot.lacks():
        pytest.skip(lacking)
    with package_boot.booted(tmp_path) as machine:
        repository = tmp_path / "shared" / "repository"
        shutil.copytree(packages.older_repository, repository)
        share(tmp_path, places.product("tests/user/actor"))
        machine.output(unit_machine.PREPARED)
        use(machine, packages.older_repository, packages.lines)
        machine.output(f"apt-get -q -y {OURS} install --no-install-recommends beowired")
        package_service.check_installed(machine)
        package_service.check_serves(machine)
        shutil.rmtree(repository)
        shutil.copytree(packages.newer_repository, repository)
        upgrade = f"apt-get -q {OURS} update && apt-get -q -y {OURS} upgrade"
        package_service.check_upgrade(machine, upgrade)
        again = f"apt-get -q -y {OURS} install --reinstall beowired"
        package_service.check_upgrade_of_a_stopped(machine, again)
        package_service.check_removal(machine)


def test_nothing_is_left_after_a_purge(cluster: Machine) -> None:
    names = " ".join(NAMES)
    cluster.output(f"apt-get -q -y {OURS} remove {names}")
    kept = {each for each in cluster.written() if each.startswith("etc/")}
    assert {"etc/beowire/beowired.conf", SETTINGS.lstrip("/")} <= kept
    cluster.output(f"apt-get -q -y {OURS} purge {names}")
    assert versions(cluster) == {}
    cluster.output("rm /etc/apt/sources.list.d/beowire.list /usr/share/keyrings/beowire.gpg")
    left = [each for each in cluster.written() if not each.startswith(OF_THE_DISTRIBUTION)]
    assert left == []
    assert cluster.directories() == []
    records = cluster.output("find /var/lib/dpkg/info -name '*beowire*'")
    assert records == ""
