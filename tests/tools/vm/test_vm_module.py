# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Kernel modules for guests: how they are built, when, and how they get into a guest.

The modules are small ones of the tests' own, in a checkout of their own.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import vm_checkout
from beowire import places
from beowire.errors import BeowireError
from beowire.vm import kernels, machine, module


def found(name: str) -> kernels.Kernel:
    try:
        return machine.find_kernel(name)
    except BeowireError as error:
        pytest.skip(f"no such kernel for guests: {error}")


@pytest.fixture(scope="module")
def kernel() -> kernels.Kernel:
    return found("")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return vm_checkout.make(tmp_path / "checkout", monkeypatch)


def files(place: Path) -> list[Path]:
    return sorted(place.rglob("*"))


def make(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "-C", str(checkout / "hosts/kernel"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_modules_are_loaded_in_their_order(kernel: kernels.Kernel, checkout: Path) -> None:
    sources = files(checkout / "hosts") + files(checkout / "engine")
    read = checkout / "said"
    script = "dmesg | grep -o -e 'first: 7 .*' -e 'second: 11'; lsmod | grep -q libcrc32c"
    with read.open("w") as output:
        guest = machine.Guest(
            ["sh", "-c", f"{script} && rmmod second first"], cpus=1, memory_mb=512, modules=True
        )
        outcome = machine.run(guest, output.fileno())
    said = read.read_text().split("\n")
    assert (outcome.exit_status, outcome.complaints) == (0, [])
    assert said[0].startswith("first: 7 ")
    assert said[1] == "second: 11"
    assert files(checkout / "hosts") + files(checkout / "engine") == sources
    assert (checkout / "build/kernel" / kernel.release / "first.ko").exists()


def test_the_project_s_modules_come_and_go_with_the_newest_kernel() -> None:
    """With the stock kernel they do so in the tests of the module: tests/kernel/test_loading.c."""
    found(kernels.NEWER)
    script = "rmmod beowire_datagram beowire && for each in $BEOWIRE_MODULES; do insmod $each; done"
    guest = machine.Guest(["sh", "-ec", script], kernels.NEWER, memory_mb=512, modules=True)
    outcome = machine.run(guest)
    assert (outcome.exit_status, outcome.complaints) == (0, []), outcome.console


@pytest.mark.usefixtures("kernel", "checkout")
def test_a_bare_guest_loads_modules() -> None:
    command = ["sh", "-c", "cd /sys/module/first && cd /sys/module/second"]
    guest = machine.Guest(
        command, cpus=1, memory_mb=512, load=["crc32c_generic"], modules=True, bare=True
    )
    outcome = machine.run(guest)
    assert (outcome.exit_status, outcome.complaints) == (0, [])


def test_a_module_that_does_not_load_ends_the_guest(checkout: Path) -> None:
    main = checkout / "hosts/kernel/main.c"
    main.write_text(main.read_text().replace("return 0;", "return -ENODEV;"))
    outcome = machine.run(machine.Guest(["true"], cpus=1, memory_mb=512, modules=True))
    assert outcome.exit_status == machine.BROKEN


def test_only_what_changed_is_built_again(kernel: kernels.Kernel, checkout: Path) -> None:
    first, second = module.build(kernel).files
    times = first.stat().st_mtime_ns, second.stat().st_mtime_ns
    assert module.build(kernel).files == [first, second]
    assert (first.stat().st_mtime_ns, second.stat().st_mtime_ns) == times
    source = checkout / "engine/sum.c"
    source.write_text(source.read_text().replace("a + b", "b + a + 1"))
    module.build(kernel)
    assert first.stat().st_mtime_ns > times[0]
    assert second.stat().st_mtime_ns == times[1]


def test_a_warning_is_an_error_each_time(kernel: kernels.Kernel, checkout: Path) -> None:
    source = checkout / "engine/sum.c"
    source.write_text(source.read_text().replace("{\n", "{\n\tint spare;\n\n"))
    for _ in range(2):
        with pytest.raises(BeowireError, match="spare"):
            module.build(kernel)


def test_a_symbol_that_no_kernel_has_is_an_error(kernel: kernels.Kernel, checkout: Path) -> None:
    source = checkout / "engine/sum.c"
    source.write_text("int absent(int a);\n" + source.read_text().replace("a + b", "absent(b)"))
    with pytest.raises(BeowireError, match="absent"):
        module.build(kernel)


def test_make_names_the_package_of_missing_headers(checkout: Path) -> None:
    done = make(checkout, f"KDIR={checkout}/none")
    assert done.returncode != 0
    assert "apt-get install linux-headers-" in done.stderr


def test_the_tree_for_dkms_is_built_without_the_checkout(
    kernel: kernels.Kernel, checkout: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "dkms"
    done = make(checkout, "dkms", f"DKMS_TREE={tree}")
    assert done.returncode == 0, done.stderr
    (checkout / "hosts").rename(tmp_path / "gone")
    (checkout / "engine").rename(tmp_path / "gone-too")
    script = f'. {tree}/dkms.conf; echo "$PACKAGE_VERSION"; eval "${{MAKE[0]}}"'
    (tmp_path / "beowire/0.1.0").mkdir(parents=True)
    (tmp_path / "beowire/0.1.0/build").symlink_to(tree)
    done = subprocess.run(
        ["bash", "-c", script],
        env={
            "PATH": "/usr/bin:/bin",
            "kernel_source_dir": str(module.headers(kernel)),
            "dkms_tree": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("0.1.0\n")
    assert (tree / "first.ko").exists()


def test_dkms_builds_signs_and_installs_what_a_kernel_loads(
    kernel: kernels.Kernel, tmp_path: Path
) -> None:
    """By DKMS itself, in a mount namespace of its own: nothing of it stays on this machine."""
    if os.geteuid() != 0:
        pytest.skip("DKMS writes to places of root's")
    if shutil.which("dkms") is None:
        pytest.skip("DKMS is not installed: apt-get install dkms")
    installed = tmp_path / "installed"
    Path("/lib/modules").mkdir(exist_ok=True)  # a machine without a stock kernel has none
    place = f"/lib/modules/{kernel.release}"
    steps = [
        *(f"mount -t tmpfs none {each}" for each in ("/var/lib/dkms", "/usr/src", "/lib/modules")),
        f"mkdir {place}",
        f"ln -s {module.headers(kernel)} {place}/build",
        f"make -s -C {places.root()}/hosts/kernel dkms",
        f"dkms install --no-depmod beowire/0.1.0 -k {kernel.release}",
        f"cp -r {place}/updates/dkms {installed}",
    ]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", "\n".join(steps)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "mokutil --import" in done.stdout
    files = [next(installed.rglob(f"{name}.ko*")) for name in ("beowire", "beowire_datagram")]
    for file in files:
        told = subprocess.run(["modinfo", "-F", "signer", file], capture_output=True, text=True)
        assert "DKMS" in told.stdout, told
    # No alias: nothing loads the module by itself when a program opens a socket of the family.
    told = subprocess.run(["modinfo", "-F", "alias", files[0]], capture_output=True, text=True)
    assert [each for each in told.stdout.split() if each.startswith("net-pf-")] == []
    told = subprocess.run(["modinfo", "-F", "depends", files[0]], capture_output=True, text=True)
    needed = " ".join(told.stdout.strip().split(","))
    load = "; ".join(f"insmod {file}" for file in files)
    guest = machine.Guest(
        ["sh", "-ec", f"modprobe -a {needed}; {load}; test -e /proc/net/beowire/node"],
        cpus=1,
        memory_mb=512,
    )
    outcome = machine.run(guest)
    assert (outcome.exit_status, outcome.complaints) == (0, []), outcome.console
