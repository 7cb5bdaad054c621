#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs over the kernel link alone, one after another, in node a of nodes.sh. The module uses a, b, c and d.
#
#	alone.sh OUT LIMIT LIST
#
# Lines of LIST: NAME MEMORY_MAX PROVIDER PROGRAM ARGUMENT ...; the node's memory_max in bytes, the
# folder of the provider. OUT/NAME.out is what a program says, OUT/NAME.status how it ends.
set -eu
out=$1
limit=$2
export FI_PROVIDER=beowire BEOWIRE_LINKS=kernel

. "$(dirname "$0")/nodes.sh"
for each in a b c d; do
	ip netns exec $each "$BEOWIRE_BUILD/programs/beowire-attach" eth0
done
while read -r name memory provider program arguments; do
	ip netns exec a sysctl -q -w net.beowire.memory_max="$memory"
	status=0
	# shellcheck disable=SC2086 # each word is an argument
	FI_PROVIDER_PATH=$provider "$BEOWIRE_BUILD/tools/guest/guest-limit" "$limit" \
		ip netns exec a "$program" $arguments </dev/null >"$out/$name.out" 2>&1 || status=$?
	echo $status >"$out/$name.status"
	ip netns exec a sh -c 'echo 0 >/proc/sys/net/beowire/encrypt; echo none >/proc/sys/net/beowire/key'
	# Down if the program was ended while it had the interface so.
	ip -n a link set eth0 up
	# What ports of a program that was ended hold until they go is charged to the next one as well.
	for _ in $(seq 90); do
		[ "$(cat /sys/module/beowire/parameters/held_bytes)" != 0 ] || break
		sleep 1
	done
done <"$3"
