#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a guest runs, with the kernel module loaded. Results go to files of OUT.
#
#	guest.sh OUT LIMIT PROVIDER PROGRAMS ROOM LIBRARY TRADED DIFFER SEEDS TEST ...
#
# Of the nodes of nodes.sh the module uses a, b, c and d: the provider's tests run in a, messages pass between a and b, and
# between c and d.
set -eu
out=$1
limit=$2
export FI_PROVIDER_PATH="$3" FI_PROVIDER=beowire
programs=$4
room=$5
library=$6
traded=$7
differ=$8
seeds=$9
shift 9

inside() {
	where=$1
	shift
	"$BEOWIRE_BUILD/tools/guest/guest-limit" "$limit" ip netns exec "$where" "$@"
}

. "$(dirname "$0")/nodes.sh"

inside a "$programs/beowire-info" >"$out/before" 2>&1 || true
for each in a b c d; do
	inside $each "$programs/beowire-attach" eth0
done
inside a "$programs/beowire-info" >"$out/after" 2>&1 || true
inside a "$programs/beowire-attach" eth0 nothere >"$out/attach" 2>&1 || true
# Nobody's group may not open the module's sockets, and it may send no raw frames either. The build
# may lie where nobody may read.
install -m 755 "$programs/beowire-info" /tmp
inside a setpriv --reuid 65534 --regid 65534 --clear-groups env BEOWIRE_LOG=info \
	/tmp/beowire-info >"$out/nobody" 2>&1 || true

for program in "$@"; do
	name=$(basename "$program")
	BEOWIRE_LINKS=kernel inside a "$program" >"$out/$name.out" 2>"$out/$name.err" ||
		echo "status $?" >>"$out/$name.err"
done

# messages NAME SERVER'S-NODE ITS-LINKS CLIENT'S-NODE ITS-LINKS ADDRESS OPTION...
messages() {
	name=$1
	server=$2
	server_links=$3
	client=$4
	client_links=$5
	address=$6
	shift 6
	mkdir -p "$out/$name/server" "$out/$name/client"
	BEOWIRE_LINKS=$server_links BEOWIRE_STATS="$out/$name/server" \
		inside "$server" "$programs/beowire-pingpong" --once --wait block >"$out/$name/waiting" 2>&1 &
	until grep -q "waiting for a client" "$out/$name/waiting" || ! kill -0 $! 2>/dev/null; do
		sleep 0.1
	done
	BEOWIRE_LINKS=$client_links BEOWIRE_STATS="$out/$name/client" \
		inside "$client" "$programs/beowire-pingpong" --transport beowire --wait block --rounds 1 "$@" \
		"$address" >"$out/$name/said" 2>&1 || echo "status $?" >>"$out/$name/said"
	wait $!
}

# An empty value counts as not set: the default.
messages default b "" a "" 10.78.9.2 --iterations 3 \
	--size 1,64,65,8903,8904,16384,16385,64K,65537,1M,16M
messages packet b packet,udp a "" 10.78.9.2 --iterations 3 --size 8,16384,16385,1M
messages udp b udp a "" 10.78.9.2 --iterations 3 --size 8,1M
messages routed d "" c "" 10.78.2.1 --iterations 3 --size 8,1M
messages routed-packet d packet,udp c "" 10.78.2.1 --iterations 3 --size 8,1M
BEOWIRE_LINKS=kernel inside a "$room" >"$out/room" 2>&1 || true
for each in anew keys meets; do
	BEOWIRE_LINKS=kernel inside a "$(dirname "$room")/link_$each" >"$out/$each" 2>&1 || true
done
# Not half of the callers fit into that.
memory=$(ip netns exec a sysctl -n net.beowire.memory_max)
ip netns exec a sysctl -q -w net.beowire.memory_max=1048576
BEOWIRE_LINKS=kernel inside a "$(dirname "$room")/link_strangers" 600 >"$out/strangers" 2>&1 || true
ip netns exec a sysctl -q -w net.beowire.memory_max="$memory"
"$(dirname "$0")/hostile.sh" "$out/hostile" "$limit" "$FI_PROVIDER_PATH" "$programs/beowire-attach" "$BEOWIRE_BUILD/tests/mpi" \
	100 3000 stranger-plain member-plain member-encrypted >"$out/hostile.log" 2>&1 || echo "status $?" >>"$out/hostile.log"
"$BEOWIRE_BUILD/tools/guest/guest-limit" 900 "$(dirname "$0")/sockets.sh" "$out/sockets" "$limit" "$library" "$traded" "$differ" "$seeds" 60 >"$out/sockets.log" 2>&1 ||
	echo "status $?" >>"$out/sockets.log"

# A program's key is the node's, or it does not open an endpoint over the module.
digits=4242424242424242424242424242424242424242424242424242424242424242
(
	umask 077
	echo $digits >/tmp/key
	echo 43${digits#??} >/tmp/other
)
BEOWIRE_KEY=/tmp/key BEOWIRE_LINKS=kernel inside a "$room" >"$out/key-none" 2>&1 || true
BEOWIRE_KEY=/tmp/key inside a "$room" >"$out/key-none-any-link" 2>&1 || true
ip netns exec a sh -c 'cat /tmp/key >/proc/sys/net/beowire/key'
BEOWIRE_KEY=/tmp/other BEOWIRE_LINKS=kernel inside a "$room" >"$out/key-other" 2>&1 || true
BEOWIRE_KEY=/tmp/key BEOWIRE_LINKS=kernel inside a "$room" >"$out/key-same" 2>&1 || true

# One that encrypts, as its node does, speaks with ports, and with endpoints by bare frames.
export BEOWIRE_KEY=/tmp/key BEOWIRE_ENCRYPT=1
for node in a b; do
	ip netns exec $node sh -c 'cat /tmp/key >/proc/sys/net/beowire/key; echo 1 >/proc/sys/net/beowire/encrypt'
done
messages sealed b kernel a kernel 10.78.9.2 --iterations 3 --size 8,16384,16385,1M
messages sealed-packet b packet a kernel 10.78.9.2 --iterations 3 --size 8,8904,16385,1M

# apart NAME: nobody is answered, and the client tells why. b's node and program are set already.
apart() {
	mkdir -p "$out/$1"
	BEOWIRE_LINKS=kernel ip netns exec b "$programs/beowire-pingpong" --once --wait block >"$out/$1/waiting" 2>&1 &
	until grep -q "waiting for a client" "$out/$1/waiting" || ! kill -0 $! 2>/dev/null; do
		sleep 0.1
	done
	BEOWIRE_LINKS=kernel inside a env $2 "$programs/beowire-pingpong" --transport beowire --wait block --rounds 1 \
		--iterations 3 --size 8 10.78.9.2 >"$out/$1/said" 2>&1 || echo "status $?" >>"$out/$1/said"
	kill $! 2>/dev/null || true
	wait $! || true
}
ip netns exec a sh -c 'echo 0 >/proc/sys/net/beowire/encrypt'
apart apart-encrypt BEOWIRE_ENCRYPT=0
ip netns exec a sh -c 'cat /tmp/other >/proc/sys/net/beowire/key; echo 1 >/proc/sys/net/beowire/encrypt'
apart apart-key BEOWIRE_KEY=/tmp/other

# Ports that are closed may live on for a minute. Then nothing is held for anybody.
held=/sys/module/beowire/parameters/held_bytes
for _ in $(seq 90); do
	[ "$(cat $held)" != 0 ] || break
	sleep 1
done
cat $held >"$out/held"
