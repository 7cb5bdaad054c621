#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a guest runs: a node whose interface the module uses, and in it the provider's tests over the kernel link;
# then a second node without the module's help, and messages between the two. Results go to files of OUT.
#
#	guest.sh OUT LIMIT PROVIDER PINGPONG INFO TEST ...
set -eu
out=$1
limit=$2
export FI_PROVIDER_PATH="$3" FI_PROVIDER=beowire
pingpong=$4
info=$5
shift 5

for node in a b; do
	ip netns add $node
	ip -n $node link set lo up
done
ip link add eth0 netns a type veth peer name eth0 netns b
ip -n a addr add 10.78.9.1/24 dev eth0
ip -n b addr add 10.78.9.2/24 dev eth0
for node in a b; do
	ip -n $node link set eth0 mtu 9000 up
done

inside() {
	node=$1
	shift
	timeout -k 5 "$limit" ip netns exec "$node" "$@"
}

BEOWIRE_LINKS=kernel inside a "$info" >"$out/before" 2>&1 || true
# BEOWIRE_IOC_ATTACH, see hosts/kernel/beowire_socket.h
inside a python3 -c 'import fcntl, socket
fcntl.ioctl(socket.socket(19, socket.SOCK_RDM, 0), 0x89E0, b"eth0".ljust(24, b"\0"))'
BEOWIRE_LINKS=kernel inside a "$info" >"$out/after" 2>&1 || true

for program in "$@"; do
	name=$(basename "$program")
	BEOWIRE_LINKS=kernel inside a "$program" >"$out/$name.out" 2>"$out/$name.err" ||
		echo "status $?" >>"$out/$name.err"
done

mkdir "$out/stats"
BEOWIRE_LINKS=packet inside b "$pingpong" --once --wait block >"$out/server" 2>&1 &
sleep 2
BEOWIRE_LINKS=kernel BEOWIRE_STATS="$out/stats" inside a "$pingpong" --transport beowire --wait block \
	--rounds 1 --iterations 5 --size 8,20000 10.78.9.2 >"$out/client" 2>&1 || true
