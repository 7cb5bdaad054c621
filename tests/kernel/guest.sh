#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a guest runs: makes the two nodes that ktest.h speaks of, then runs the test programs one after another.
# Their words go to files of OUT, where the host reads them. None may take longer than LIMIT seconds, nor longer than
# what is left of the guest's own time; one that does is told on the console, with the stacks of all.
#
#	guest.sh OUT LIMIT PROGRAM [ARG ...] [-- PROGRAM ...]
set -eu
out=$1
limit=$2
shift 2

ip link set lo up

# The nodes as each program finds them, made anew: what another one has closed may linger, and speak.
begin() {
	for node in a b m; do
		[ ! -e /run/netns/$node ] || ip netns del $node
	done
	for node in a b; do
		ip netns add $node
		ip -n $node link set lo up
	done
	ip link add eth0 netns a mtu 9000 type veth peer name eth0 netns b mtu 9000
	for node in a b; do
		ip -n $node link set eth0 up
	done
	for each in user_memory_max=0 user_ports_max=4096 overflow_max=0; do
		echo "${each#*=}" >"/sys/module/beowire/parameters/${each%=*}"
	done
}

while [ $# -gt 0 ]; do
	begin
	name=${1##*/}
	command=
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		command="$command $1"
		shift
	done
	[ $# -eq 0 ] || shift
	status=0
	# shellcheck disable=SC2086 # words without blanks
	"$BEOWIRE_BUILD/tools/guest/guest-limit" "$limit" $command >"$out/$name.out" 2>"$out/$name.err" || status=$?
	[ $status -ne 0 ] || continue
	echo "status $status" >>"$out/$name.err"
	[ $status -ne 125 ] || exit 1 # it cannot be killed: nothing can be said of others
done
