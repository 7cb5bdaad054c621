# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The life of the package beowired on a machine with systemd: its scripts, step by step."""

import unit_machine as unit
from package_boot import Booted

_OVERRIDE = "/run/systemd/system/beowired.service.d"
_ELSEWHERE = "! -path '*/apt/*' ! -path '/usr/share/keyrings/*'"
_LEFT = f"find /etc /usr /var/lib /run -xdev -name '*beowire*' {_ELSEWHERE}"


def active(machine: Booted) -> str:
    return machine.run("systemctl is-active beowired").stdout.strip()


def check_installed(machine: Booted) -> None:
    """Neither enabled nor started; the policy names nobody, and a start says so."""
    assert machine.run("systemctl is-enabled beowired").stdout == "disabled\n"
    assert active(machine) == "inactive"
    assert machine.run("systemctl start beowired").returncode != 0
    assert machine.property("ExecMainStatus") == "78"
    unit.told(machine, "nobody is allowed")


def check_serves(machine: Booted) -> None:
    """As docs/cluster.md says."""
    unit.policy(machine, f"groups = {unit.GROUP}\\ninterfaces = eth0\\n")
    machine.output("systemctl enable --now beowired")
    assert active(machine) == "active"


def check_upgrade(machine: Booted, upgrade: str) -> None:
    """It goes on with its clients; what is new runs from a restart on."""
    with unit.conversation(machine) as (one, other):
        unit.exchange(one, other, 1)
        before, process = unit.frames(one), machine.property("MainPID")
        machine.output(upgrade)
        assert machine.property("MainPID") == process
        assert machine.property("NeedDaemonReload") == "no"
        unit.exchange(one, other, 11)
        assert unit.frames(one) > before
        machine.output("systemctl restart beowired")
        assert machine.property("MainPID") != process
        unit.exchange(one, other, 21)


def check_upgrade_of_a_stopped(machine: Booted, upgrade: str) -> None:
    """Who enabled it gets it; who did not does not."""
    machine.output(f"systemctl stop beowired && {upgrade}")
    assert active(machine) == "active"
    machine.output(f"systemctl disable --now beowired && {upgrade}")
    assert active(machine) == "inactive"
    assert machine.run("systemctl is-enabled beowired").stdout == "disabled\n"
    machine.output("systemctl enable --now beowired")


def check_removal(machine: Booted) -> None:
    """A removal stops it; a purge leaves nothing, though it had no chance to remove its socket."""
    pause = "[Service]\\nRestartSec=infinity\\n"
    machine.output(f"mkdir -p {_OVERRIDE} && printf '{pause}' >{_OVERRIDE}/pause.conf")
    machine.output("systemctl daemon-reload && systemctl kill --signal=KILL beowired")
    machine.until("systemctl is-active beowired", "activating")
    machine.output("test -S /run/beowire/beowired.sock")
    machine.output("apt-get -q -y remove beowired")
    assert active(machine) == "inactive"
    machine.until("cd /sys/class/net && ls -d beowired* || true", "")
    assert machine.run("test -e /run/beowire").returncode != 0
    assert machine.run("test -e /sys/fs/cgroup/system.slice/beowired.service").returncode != 0
    assert machine.run(f"grep -q {unit.GROUP} {unit.POLICY}").returncode == 0
    machine.output("apt-get -q -y purge beowired")
    assert machine.run("systemctl list-unit-files --no-legend 'beowire*'").stdout == ""
    known = machine.output("systemctl list-units --all --plain --no-legend 'beowire*'")
    assert known == "", known
    machine.output(f"rm -r {_OVERRIDE}")
    left = machine.output(_LEFT)
    assert left == "", left
