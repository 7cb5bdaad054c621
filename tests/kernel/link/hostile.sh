#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Two nodes of a guest with ports of the module exchange messages and memory of which every byte is checked
# (tests/mpi/named.c), while a third one on their segment, which does not use the module, speaks to the first's port.
#
#	hostile.sh OUT LIMIT PROVIDER ATTACH PROGRAMS ROUNDS RATE NAME ...
#
# NAME says who speaks, and what the two have: stranger-plain, member-key, member-encrypted. Of each a directory of OUT
# tells what the three said, what the endpoints counted, and the bytes that the module held before and at most.
set -eu
out=$1
limit=$2
export FI_PROVIDER_PATH="$3" FI_PROVIDER=beowire BEOWIRE_LINKS=kernel
attach=$4
programs=$5
rounds=$6
rate=$7
shift 7
held=/sys/module/beowire/parameters/held_bytes
key=/tmp/hostile-key

inside() {
	where=$1
	shift
	"$BEOWIRE_BUILD/tools/guest/guest-limit" "$limit" ip netns exec "$where" "$@"
}

ip netns add segment
ip -n segment link add br0 type bridge
ip -n segment link set br0 up
for node in h1 h2 h3; do
	ip netns add $node
	ip -n $node link set lo up
	ip link add eth0 netns $node type veth peer name $node netns segment
	ip -n segment link set $node master br0 up
	ip -n $node link set eth0 up
done
for node in h1 h2; do
	inside $node "$attach" eth0
done
(
	umask 077
	echo 4242424242424242424242424242424242424242424242424242424242424242 >$key
)

# The most that it holds, until it is told to stop.
watched() {
	most=0
	while [ ! -e "$1.stop" ]; do
		now=$(cat $held)
		[ "$now" -le "$most" ] || most=$now
		sleep 0.2
	done
	echo "$most"
}

# side NAME NODE NUMBER
side() {
	BEOWIRE_STATS=$out/$1/$3 inside "$2" "$programs/named" "$3" "/tmp/$1" "$rounds" >"$out/$1/said-$3" 2>&1 ||
		echo "status $?" >>"$out/$1/said-$3"
}

for name in "$@"; do
	mkdir -p "$out/$name/0" "$out/$name/1" "/tmp/$name"
	program=${name%-*}
	unset BEOWIRE_KEY BEOWIRE_ENCRYPT
	set -- 7
	[ "$program" = stranger ] || set -- 7 raw
	case $name in
	*-key | *-encrypted)
		export BEOWIRE_KEY=$key
		[ "$program" = stranger ] || set -- "$@" key=$key
		for node in h1 h2; do
			ip netns exec $node sh -c "cat $key >/proc/sys/net/beowire/key"
		done
		;;
	esac
	case $name in
	*-encrypted)
		export BEOWIRE_ENCRYPT=1
		[ "$program" = stranger ] || set -- "$@" encrypt
		for node in h1 h2; do
			ip netns exec $node sh -c "echo 1 >/proc/sys/net/beowire/encrypt"
		done
		;;
	esac
	before=$(cat $held)
	watched "/tmp/$name" >"/tmp/$name/most" &
	watch=$!
	"$programs/$program" /run/netns/h1 /run/netns/h3 eth0 "$rate" "$@" >"$out/$name/spoke" 2>&1 &
	speaker=$!
	side "$name" h2 1 &
	second=$!
	side "$name" h1 0
	wait $second
	kill $speaker 2>/dev/null || true
	wait $speaker || echo "status $?" >>"$out/$name/spoke"
	: >"/tmp/$name.stop"
	wait $watch
	echo "$before $(cat "/tmp/$name/most")" >"$out/$name/held"
done
