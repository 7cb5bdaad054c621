# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The settings of a lab's Slurm: slurm.conf(5) and cgroup.conf(5), the same files for all nodes.

A node finds what is its own below `local`, which is a directory of each node's mount namespaces.
"""

import os
from pathlib import Path

from beowire import places
from beowire.lab.lab import Lab

CONTROLLER_PORT = 6817
NODE_PORT = 6818
"""Both as slurm.conf(5) has them: the network of a node is its own."""
CREDENTIAL_S = 10
"""How long the permission to start a step holds; a job that is requeued waits for its end."""
_CPUS_MIN = 4


def cpus() -> int:
    """How many processors a node says that it has: those of the machine, which all nodes share. Of
    few there are more, so that jobs run beside each other."""
    return max(os.cpu_count() or 1, _CPUS_MIN)


def controller(lab: Lab) -> str:
    """The node that slurmctld runs on."""
    return lab.node_names()[0]


def slurm_conf(lab: Lab, directory: Path) -> str:
    """The text of slurm.conf. `directory` holds it, and all that Slurm keeps."""
    first = controller(lab)
    own = directory / "local"
    lines = [
        f"ClusterName={lab.name}",
        f"SlurmctldHost={first}({lab.address(first)})",
        f"SlurmctldPort={CONTROLLER_PORT}",
        f"SlurmdPort={NODE_PORT}",
        "SlurmUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={own}/munge.sock,cred_expire={CREDENTIAL_S}",
        f"StateSaveLocation={directory}/state",
        f"SlurmdSpoolDir={own}/spool",
        f"TmpFS={own}/tmp",
        f"SlurmctldPidFile={own}/slurmctld.pid",
        f"SlurmdPidFile={own}/slurmd.pid",
        # Control groups of one machine would be those of all of its nodes.
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        f"Epilog={places.package_file('run/epilog.sh')}",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        # A job whose time has come is looked for so often, in seconds.
        "SchedulerParameters=sched_interval=2,bf_interval=2",
        "SlurmdParameters=config_overrides",
        "MpiDefault=pmix",
        "KillOnBadExit=1",
        "KillWait=5",
        "ReturnToService=2",
        # Nodes of one machine may be slow to answer.
        "MessageTimeout=60",
        "SwitchType=switch/none",
        *(
            f"NodeName={node} NodeAddr={lab.address(node)} CPUs={cpus()} State=UNKNOWN"
            for node in lab.node_names()
        ),
        "PartitionName=lab Nodes=ALL Default=YES State=UP",
    ]
    return "\n".join(lines) + "\n"


def cgroup_conf(directory: Path) -> str:
    """The text of cgroup.conf: slurmd loads a plug-in for control groups even where nothing asks
    for one; that of version 1 looks for nothing then."""
    return (
        f"CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nCgroupMountpoint={directory}/local/cgroup\n"
    )
