#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# An Epilog for slurm.conf(5): root executes it on each node of a job that has ended. It kills what
# is left of the job in this network namespace, of the job's user alone, and removes what killed
# processes of that user left in shared memory: segments of MPI libraries and boards of Beowire.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
uid=${SLURM_JOB_UID:?} job=${SLURM_JOB_ID:?}
case $uid$job in *[!0-9]*) exit 1 ;; esac
group=${SLURM_JOB_GID:-65534}
case $group in *[!0-9]*) exit 1 ;; esac
# A number may be another process's by the time it is killed: the user kills, who can kill his own.
as_user() { setpriv --reuid="$uid" --regid="$group" --clear-groups -- "$@"; }
network=$(readlink /proc/self/ns/net)
find /proc -maxdepth 1 -name '[0-9]*' -user "$uid" 2>/dev/null |
while IFS= read -r process; do
	[ "$uid" -ne 0 ] || break
	[ "$(readlink "$process/ns/net" 2>/dev/null)" = "$network" ] || continue
	{ tr '\0' '\n' <"$process/environ"; } 2>/dev/null | grep -qxF "SLURM_JOB_ID=$job" &&
		as_user sh -c 'kill -KILL "$1"' sh "${process#/proc/}" 2>/dev/null
done
mark=$(mktemp) || exit 0
chmod 644 "$mark"
touch -d @0 "$mark"
# The user may not be allowed to reach the script's directory.
as_user sh -s "$mark" <"${0%/*}/sweep.sh"
rm -f "$mark"
exit 0
