#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a guest runs: makes the two nodes that ktest.h speaks of, then runs the test programs one after another.
# Their words go to files of OUT, where the host reads them.
#
#	guest.sh OUT LIMIT PROGRAM [ARG ...] [-- PROGRAM ...]
set -eu
out=$1
limit=$2
shift 2
export KT_PATIENCE_S=$((limit / 2)) # of one test

ip link set lo up
for node in a b; do
	ip netns add $node
	ip -n $node link set lo up
done
ip link add eth0 netns a type veth peer name eth0 netns b

while [ $# -gt 0 ]; do
	# A test that failed may have left them otherwise.
	for node in a b; do
		ip -n $node link set eth0 mtu 9000 up
		ip netns exec $node sh -c 'echo 67108864 >/proc/sys/net/beowire/memory_max; echo none >/proc/sys/net/beowire/key'
	done
	for each in user_memory_max=0 user_ports_max=4096 overflow_max=0; do
		echo "${each#*=}" >"/sys/module/beowire/parameters/${each%=*}"
	done
	if [ -e /run/netns/m ]; then
		ip netns del m
	fi
	name=$(basename "$1")
	command=
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		command="$command $1"
		shift
	done
	[ $# -eq 0 ] || shift
	# shellcheck disable=SC2086 # words without blanks
	timeout -k 5 "$limit" $command >"$out/$name.out" 2>"$out/$name.err" || echo "status $?" >>"$out/$name.err"
done
