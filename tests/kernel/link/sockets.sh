#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Socket programs whose connections go by the kernel module, between the nodes a and b of a guest, which both use it
# by eth0. Each has a directory of OUT for what it said, how it ended, and what the library counted.
#
#	sockets.sh OUT LIMIT LIBRARY TRADED DIFFER "SEED ..." STEPS
#
# TCP has a cable of its own, eth1: what passes eth0 is Beowire's, and eth0 can be pulled out.
set -eu
out=$1
limit=$2
library=$3
traded=$4
differ=$5
seeds=$6
steps=$7
there=10.78.8.2
export BEOWIRE_SOCKETS_AFTER=0 BEOWIRE_SOCKETS_EXPLAIN=on BEOWIRE_SOCKETS_COMPARE=off

ip link add eth1 netns a type veth peer name eth1 netns b
ip -n a link set eth1 mtu 9000 up
ip -n b link set eth1 mtu 9000 up
ip -n a addr add 10.78.8.1/24 dev eth1
ip -n b addr add $there/24 dev eth1

begin() {
	place=$out/$1
	mkdir -p "$place"
	export BEOWIRE_SOCKETS_STATS="$place"
}

# inside NODE WORD ...: with the library
inside() {
	node=$1
	shift
	exec "$BEOWIRE_BUILD/tools/guest/guest-limit" "$limit" ip netns exec "$node" \
		env "LD_PRELOAD=$library" "$@"
}

# Bytes that have come to b by the cable that is Beowire's alone
carried() {
	ip netns exec b cat /sys/class/net/eth0/statistics/rx_bytes
}

# trading NAME PORT [ADDRESS]: a client that does what say() tells it, and its server. Both go by Beowire at the end.
trading() {
	begin "$1"
	before=$(carried)
	mkfifo "/tmp/$1.served" "/tmp/$1.orders" "/tmp/$1.answers"
	inside b "$traded" serve "$2" >"/tmp/$1.served" 2>"$place/server" &
	server=$!
	exec 5<"/tmp/$1.served"
	read -r server_pid <&5
	inside a "$traded" drive "${3:-$there}" "$2" <"/tmp/$1.orders" >"/tmp/$1.answers" 2>"$place/client" &
	client=$!
	exec 3>"/tmp/$1.orders" 4<"/tmp/$1.answers"
	read -r client_pid <&4
	say switched
}

# It answers once it has done it; if it cannot, all this ends.
say() {
	echo "$1" >&3
	read -r line <&4
	echo "$line" >>"$place/answers"
}

# What became of both
ended() {
	exec 3>&- 4<&-
	client_status=0
	server_status=0
	wait "$client" || client_status=$?
	read -r line <&5 || line=nothing
	wait "$server" || server_status=$?
	exec 5<&-
	echo "client $client_status, server $server_status: $line" >"$place/ended"
	echo $(($(carried) - before)) >"$place/carried"
}

export BEOWIRE_LINKS=kernel
trading exchange 7301
ip netns exec a cat /proc/net/packet >"$place/packet-sockets"
ip netns exec a cat /proc/net/beowire/sockets >"$place/module-sockets"
say "trade 2000000"
say half
ended

export BEOWIRE_DEAD_TIMEOUT=3
trading rescued 7302
say "trade 100000"
ip -n a link set eth0 down
say lost
say "trade 100000"
ip -n a link set eth0 up
say switched
say "trade 200000"
say half
ended

unset BEOWIRE_DEAD_TIMEOUT
trading server-killed 7303
say "trade 100000"
kill -KILL "$server_pid"
say broken
ended

trading client-killed 7304
say "trade 100000"
kill -KILL "$client_pid"
ended

# With what an endpoint has by default, UDP among it, the way is found out first.
unset BEOWIRE_LINKS
trading default 7305 10.78.9.2
say "trade 300000"
say half
ended

export BEOWIRE_LINKS=kernel
for seed in $seeds; do
	begin "differ-$seed"
	mkfifo "/tmp/differ-$seed"
	inside b "$differ" serve 7306 >"/tmp/differ-$seed" 2>"$place/server" &
	server=$!
	read -r line <"/tmp/differ-$seed"
	status=0
	(inside a "$differ" drive $there 7306 "$seed" "$steps") >"$place/client" 2>&1 || status=$?
	server_status=0
	wait $server || server_status=$?
	echo "client $status, server $server_status: $line" >"$place/ended"
done
# A program of the distribution. Its client asks until what it asks goes by Beowire, then for long values.
if command -v redis-server >/dev/null; then
	begin redis
	before=$(carried)
	mkfifo /tmp/redis
	inside b redis-server --port 7307 --protected-mode no --save "" >"$place/server" 2>&1 &
	server=$!
	until ip netns exec a redis-cli -h $there -p 7307 ping >/dev/null 2>&1; do
		sleep 0.1
	done
	inside a redis-cli -h $there -p 7307 </tmp/redis >"$place/said" 2>"$place/client" &
	client=$!
	exec 3>/tmp/redis
	word=$(printf %01000d 0)
	while [ "$(carried)" -lt $((before + 20000)) ]; do
		for each in 1 2 3 4 5; do
			echo "echo $word" >&3
		done
	done
	echo "set long $(printf %020000d 7)" >&3
	for each in 1 2 3 4 5 6 7 8 9 10; do
		echo "get long" >&3
	done
	exec 3>&-
	wait $client
	ip netns exec a redis-cli -h $there -p 7307 shutdown nosave
	server_status=0
	wait $server || server_status=$?
	echo "server $server_status" >"$place/ended"
fi

# What is left of all these processes
until [ "$(ip netns exec a cat /proc/net/beowire/ports | wc -l)" = 1 ]; do
	sleep 0.1
done
