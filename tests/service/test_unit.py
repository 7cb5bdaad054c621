# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The unit of beowired under systemd: what its sandbox lets the service do, and what systemd does
for it. The tests follow one another on one machine (package_boot.py)."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import unit_machine as unit
from beowire import places
from package_boot import Booted, booted, lacks
from unit_machine import GROUP, POLICY, STRANGER, USER, conversation, exchange, frames, policy, told

EXPOSURE = 26
"""Tenths, at most, by systemd-analyze security of Debian 12; docs/security.md names it."""
GOOD = f"groups = {GROUP}\\ninterfaces = eth0\\n"
START_LIMIT = 5
"""So often systemd starts a unit within 10 s, unless the unit says otherwise."""
SOCKET = "/run/beowire/beowired.sock"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unit")


@pytest.fixture(scope="module")
def machine(room: Path) -> Iterator[Booted]:
    """Systemd has the unit; there is another node, and a policy that allows nobody."""
    if lacking := lacks():
        pytest.skip(lacking)
    with booted(room) as made:
        for each in ("service/beowired", "service/beowired.service", "tests/user/actor"):
            shutil.copy(places.product(each), room / "shared")
        made.output("install -m 644 /tmp/shared/beowired.service /etc/systemd/system/")
        path = made.output("sed -n 's/^ExecStart=//p' /tmp/shared/beowired.service").strip()
        made.output(f"install -D /tmp/shared/beowired {path} && mkdir -p /etc/beowire")
        made.output(f"rm -f {POLICY} && systemctl daemon-reload")
        made.output(unit.PREPARED)
        yield made


def cables(machine: Booted) -> list[str]:
    """Interfaces that the service made."""
    return machine.output("cd /sys/class/net && ls -d beowired* || true").split()


def test_systemd_has_no_complaint(machine: Booted) -> None:
    assert machine.output("systemd-analyze verify --man=no beowired.service 2>&1") == ""
    machine.output(f"systemd-analyze security --threshold={EXPOSURE} beowired.service")


def test_without_a_policy_nothing_starts(machine: Booted) -> None:
    machine.output("systemctl start beowired")
    assert machine.property("ConditionResult") == "no"
    assert machine.property("ActiveState") == "inactive"


def test_a_bad_policy_is_told_and_not_tried_again(machine: Booted) -> None:
    policy(machine, "interfaces = eth0\\n")
    assert machine.run("systemctl start beowired").returncode != 0
    assert machine.property("ActiveState") == "failed"
    assert machine.property("ExecMainStatus") == "78"
    assert machine.property("NRestarts") == "0"
    assert told(machine, "nobody is allowed")["PRIORITY"] == "3"


def test_what_has_started_is_ready(machine: Booted) -> None:
    policy(machine, GOOD)
    machine.output("systemctl enable --now beowired")
    assert machine.property("ActiveState") == "active"
    assert machine.property("Type") == "notify"
    machine.output(f"test -S {SOCKET}")
    assert len(cables(machine)) == 1
    ready = told(machine, "ready at")
    assert ready["MESSAGE"] == f"ready at {SOCKET}, for up to 4096 endpoints"
    assert ready["PRIORITY"] == "5"


def test_a_user_speaks_by_raw_frames(machine: Booted, room: Path) -> None:
    with conversation(machine, room) as (one, other):
        exchange(one, other, 1)
        exchange(one, other, 11, 1_000_000)
        assert frames(one) > 1_000_000
        opened = told(machine, f"opened uid={unit.number(machine, USER)} ")
        assert opened["PRIORITY"] == "6"
    told(machine, f"closed uid={unit.number(machine, USER)} ")
    unit.refused(machine, room, STRANGER)
    assert told(machine, f"refused uid={unit.number(machine, STRANGER)} ")["PRIORITY"] == "5"


def test_a_reload_takes_a_good_policy_alone(machine: Booted, room: Path) -> None:
    """Names are looked up by then with the system calls that the service has left itself, also
    by plug-ins that were not loaded before: here that of systemd's own users."""
    process = machine.property("MainPID")
    policy(machine, "nonsense\\n")
    assert machine.run("systemctl reload beowired").returncode != 0
    assert machine.property("ActiveState") == "active"
    machine.output(
        "systemd-run --unit=ephemeral -p DynamicUser=yes -p User=ephemeral sleep infinity"
    )
    machine.output("getent passwd ephemeral")
    policy(machine, f"users = {STRANGER}, ephemeral\\n{GOOD}")
    machine.output("systemctl reload beowired")
    told(machine, "the policy was read anew")
    machine.until("systemctl is-active beowired", "active")
    with unit.speaker(machine, room, "stranger", f"runuser -u {STRANGER} --"):
        pass
    assert machine.property("MainPID") == process
    policy(machine, GOOD)
    machine.output("systemctl stop ephemeral && systemctl reload beowired")


def test_a_conversation_outlives_the_service(machine: Booted, room: Path) -> None:
    """Killed and restarted; what containers have mounted stays the same directory."""
    directory = machine.output("stat -c %i /run/beowire")
    with conversation(machine, room) as (one, other):
        exchange(one, other, 1)
        for tag, command in ((11, "kill --signal=KILL"), (21, "restart")):
            process = machine.property("MainPID")
            machine.output(f"systemctl {command} beowired")
            exchange(one, other, tag)
            machine.until("systemctl is-active beowired", "active")
            fresh = machine.property("MainPID")
            assert fresh != process
            opened = f"journalctl --sync; journalctl _PID={fresh} --grep=opened -o cat | wc -l"
            machine.until(opened, "1")
            before = frames(one)
            exchange(one, other, tag + 2)
            assert frames(one) > before
    assert machine.property("NRestarts") == "0"  # the restart has begun to count anew
    assert len(cables(machine)) == 1
    assert machine.output("stat -c %i /run/beowire") == directory


def test_an_interface_that_comes_late_is_served(machine: Booted) -> None:
    """However often the service was started in vain before."""
    place = "/etc/systemd/system/beowired.service.d"
    settings = "[Service]\\nRestartSec=50ms\\nLimitNOFILE=72\\n"
    machine.output(f"mkdir {place} && printf '{settings}' >{place}/override.conf")
    machine.output("systemctl daemon-reload && ip link del eth0")
    assert machine.run("systemctl restart beowired").returncode != 0
    while int(machine.property("NRestarts")) <= START_LIMIT + 1:
        assert machine.property("ActiveState") == "activating"
    told(machine, "interface eth0: looking at it: No such device")
    machine.output(unit.CABLE)
    machine.until("systemctl is-active beowired", "active")
    told(machine, "ready at .*, for up to 2 endpoints")


def test_a_stop_leaves_nothing(machine: Booted) -> None:
    machine.output("systemctl disable --now beowired")
    assert machine.property("Result") == "success"
    assert machine.property("ActiveState") == "inactive"
    assert cables(machine) == []
    assert machine.run(f"test -e {SOCKET}").returncode != 0
    assert machine.run("test -e /sys/fs/cgroup/system.slice/beowired.service").returncode != 0
