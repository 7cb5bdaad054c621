#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Tells what of this host decides where ranks run, a fact a line: processors and memory that
# processes may use, NUMA nodes, cores, interfaces with their node, limits of priority.
sys=/sys/devices/system
first() {
	head -n 1 "$1" 2>/dev/null
}
awk '/^(Cpus|Mems)_allowed_list:|^CapEff:/ { print tolower($1), $2 }' /proc/self/status
awk '/^Max nice priority/ { print "limit nice:", $4 }
	/^Max realtime priority/ { print "limit rt:", $4 }' /proc/self/limits
echo "nice: $(nice)"
for place in "$sys"/node/node[0-9]*; do
	[ -d "$place" ] && echo "node ${place##*node}: $(first "$place/cpulist")"
	[ -d "$place" ] && echo "distance ${place##*node}: $(first "$place/distance")"
done
for place in "$sys"/cpu/cpu[0-9]*; do
	siblings=$(first "$place/topology/thread_siblings_list")
	[ -z "$siblings" ] || echo "core ${place##*cpu}: $siblings"
done
default=$(awk '$2 == "00000000" { print $1; exit }' /proc/net/route)
for place in /sys/class/net/*; do
	up=$(first "$place/operstate")
	[ -e "$place/device" ] || continue
	at=-1
	for above in . .. ../.. ../../..; do
		node=$(first "$place/device/$above/numa_node")
		[ "${node:--1}" -ge 0 ] && at=$node && break
	done
	echo "interface ${place##*/}: $at $up $([ "${place##*/}" = "$default" ] && echo default)"
done
command -v numactl >/dev/null && echo "numactl: yes"
exit 0
