# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The unit of beowired under systemd: what its sandbox lets the service do, and what systemd does
for it. All on one machine (package_boot.py), each test also by itself."""

import os
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
OVERRIDE = "/etc/systemd/system/beowired.service.d"
MAIN = "systemctl show --value --property=MainPID beowired"
UNIT = "BEOWIRE_TEST_UNIT"
"""The variable that names another unit than the build's: one with a defect."""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unit")


@pytest.fixture(scope="module")
def machine(room: Path) -> Iterator[Booted]:
    """Systemd has the unit; there is another node, and a policy that allows nobody."""
    if lacking := lacks():
        pytest.skip(lacking)
    with booted(room) as made:
        for each in ("service/beowired", "tests/user/actor"):
            shutil.copy(places.product(each), room / "shared")
        given = os.environ.get(UNIT) or places.product("service/beowired.service")
        shutil.copyfile(given, room / "shared" / "beowired.service")
        made.output("install -m 644 /tmp/shared/beowired.service /etc/systemd/system/")
        path = made.output("sed -n 's/^ExecStart=//p' /tmp/shared/beowired.service").strip()
        made.output(f"install -D /tmp/shared/beowired {path} && mkdir -p /etc/beowire")
        made.output(f"rm -f {POLICY} && systemctl daemon-reload")
        made.output("rm -f /bin/kill")  # as where procps is not installed
        made.output(unit.PREPARED)
        yield made


@pytest.fixture
def serving(machine: Booted) -> Booted:
    """The service runs."""
    policy(machine, GOOD)
    machine.output("systemctl start beowired")
    return machine


def cables(machine: Booted) -> list[str]:
    """Interfaces that the service made."""
    return machine.output("cd /sys/class/net && ls -d beowired* || true").split()


def test_systemd_has_no_complaint(machine: Booted) -> None:
    assert machine.output("systemd-analyze verify --man=no beowired.service 2>&1") == ""
    file = machine.property("FragmentPath")
    machine.output(f"systemd-analyze security --offline=yes --threshold={EXPOSURE} {file}")


def test_without_a_policy_nothing_starts(machine: Booted) -> None:
    machine.output(f"rm -f {POLICY} && systemctl start beowired")
    assert machine.property("ConditionResult") == "no"
    assert machine.property("ActiveState") == "inactive"


def test_a_bad_policy_is_told_and_not_tried_again(machine: Booted) -> None:
    policy(machine, "interfaces = eth0\\n")
    machine.output("systemctl stop beowired")
    assert machine.run("systemctl start beowired").returncode != 0
    assert machine.property("ActiveState") == "failed"
    assert machine.property("ExecMainStatus") == "78"
    assert machine.property("NRestarts") == "0"
    assert told(machine, "nobody is allowed")["PRIORITY"] == "3"


def test_a_name_that_nobody_knows_yet_is_tried_again(machine: Booted) -> None:
    """What tells names may come up after the service."""
    policy(machine, "groups = late\\ninterfaces = eth0\\n")
    machine.output("systemctl stop beowired")
    assert machine.run("systemctl start beowired").returncode != 0
    assert machine.property("ExecMainStatus") == "1"
    told(machine, "groups: .late. is not taken")
    machine.output("groupadd late")
    machine.until("systemctl is-active beowired", "active")
    machine.output("systemctl stop beowired && groupdel late")


def test_what_has_started_is_ready(machine: Booted) -> None:
    policy(machine, GOOD)
    machine.output("systemctl stop beowired && systemctl enable --now beowired")
    assert machine.property("ActiveState") == "active"
    assert machine.property("Type") == "notify"
    machine.output(f"test -S {SOCKET}")
    assert len(cables(machine)) == 1
    ready = told(machine, "ready at")
    assert ready["MESSAGE"] == f"ready at {SOCKET}, for up to 4096 endpoints"
    assert ready["PRIORITY"] == "5"


def test_a_user_speaks_by_raw_frames(serving: Booted) -> None:
    with conversation(serving) as (one, other):
        exchange(one, other, 1)
        exchange(one, other, 11, 1_000_000)
        assert frames(one) > 1_000_000
        opened = told(serving, f"opened uid={unit.number(serving, USER)} ")
        assert opened["PRIORITY"] == "6"
    told(serving, f"closed uid={unit.number(serving, USER)} ")
    unit.refused(serving, STRANGER)
    assert told(serving, f"refused uid={unit.number(serving, STRANGER)} ")["PRIORITY"] == "5"


def test_a_reload_takes_a_good_policy_alone(serving: Booted) -> None:
    """Names are looked up by then with the system calls that the service has left itself, also
    by plug-ins that were not loaded before: here that of systemd's own users."""
    process = serving.property("MainPID")
    policy(serving, "nonsense\\n")
    assert serving.run("systemctl reload beowired").returncode != 0
    assert serving.property("ActiveState") == "active"
    serving.output(
        "systemd-run --unit=ephemeral -p Type=exec -p DynamicUser=yes -p User=ephemeral "
        "sleep infinity"
    )
    serving.output("getent passwd ephemeral")
    policy(serving, f"users = {STRANGER}, ephemeral\\n{GOOD}")
    serving.output("systemctl reload beowired")
    told(serving, "the policy was read anew")
    serving.until("systemctl is-active beowired", "active")
    with unit.speaker(serving, "stranger", "runuser", "-u", STRANGER, "--"):
        pass
    assert serving.property("MainPID") == process
    policy(serving, GOOD)
    serving.output("systemctl stop ephemeral && systemctl reload beowired")


def test_a_key_of_roots_is_read_within_the_sandbox(serving: Booted) -> None:
    """At a reload, by a process without any right, and at a start; one in a home is not seen."""
    serving.output(
        "umask 077; printf '%064d\\n' 7 >/etc/beowire/key; cp /etc/beowire/key /root/key"
    )
    policy(serving, f"{GOOD}key = /etc/beowire/key\\n")
    serving.output("systemctl reload beowired")
    fresh = told(serving, "endpoints get the key .* of /etc/beowire/key")
    serving.output("systemctl restart beowired")
    again = told(serving, "endpoints get the key .* of /etc/beowire/key")
    assert again["MESSAGE"] == fresh["MESSAGE"]
    assert again["_PID"] != fresh["_PID"]
    policy(serving, f"{GOOD}key = /root/key\\n")
    assert serving.run("systemctl restart beowired").returncode != 0
    assert told(serving, "key: /root/key cannot be opened: Permission denied")["PRIORITY"] == "3"
    policy(serving, GOOD)
    serving.output("rm /root/key /etc/beowire/key; systemctl start beowired")


def test_a_conversation_outlives_the_service(serving: Booted) -> None:
    """Killed and restarted; what containers have mounted stays the same directory."""
    directory = serving.output("stat -c %i /run/beowire")
    with conversation(serving) as (one, other):
        exchange(one, other, 1)
        for tag, command in ((11, "kill --signal=KILL"), (21, "restart")):
            process = serving.property("MainPID")
            serving.output(f"systemctl {command} beowired")
            exchange(one, other, tag)
            serving.until(f"[ $({MAIN}) != {process} ] && systemctl is-active beowired", "active")
            opened = f"journalctl _PID=$({MAIN}) --grep=opened -o cat -n 1 | wc -l"
            serving.until(f"journalctl --sync; {opened}", "1")
            before = frames(one)
            exchange(one, other, tag + 2)
            assert frames(one) > before
    assert len(cables(serving)) == 1
    assert serving.output("stat -c %i /run/beowire") == directory


def test_an_interface_that_comes_late_is_served(serving: Booted) -> None:
    """However often the service was started in vain before."""
    settings = "[Service]\\nRestartSec=50ms\\nLimitNOFILE=72\\n"
    serving.output(f"mkdir {OVERRIDE} && printf '{settings}' >{OVERRIDE}/override.conf")
    serving.output("systemctl daemon-reload && ip link del eth0")
    assert serving.run("systemctl restart beowired").returncode != 0
    while int(serving.property("NRestarts")) <= START_LIMIT + 1:
        assert serving.property("ActiveState") in ("activating", "deactivating")
    told(serving, "interface eth0: looking at it: No such device")
    serving.output(unit.CABLE)
    serving.until("systemctl is-active beowired", "active")
    told(serving, "ready at .*, for up to 2 endpoints")
    serving.output(f"rm -r {OVERRIDE} && systemctl daemon-reload")


def test_a_stop_leaves_nothing(serving: Booted) -> None:
    serving.output("systemctl enable beowired && systemctl disable --now beowired")
    assert serving.property("Result") == "success"
    assert serving.property("ActiveState") == "inactive"
    assert cables(serving) == []
    assert serving.run(f"test -e {SOCKET}").returncode != 0
    assert serving.run("test -e /sys/fs/cgroup/system.slice/beowired.service").returncode != 0
