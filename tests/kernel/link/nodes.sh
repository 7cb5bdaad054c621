# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Nodes of a guest, for shells to read in; the kernel module is not told of any interface yet.
#
#	a ---- b		MTU 9000
#	c ---- r ---- d		r forwards IP only: raw frames do not reach the other

# A network namespace of this name
node() {
	ip netns add "$1"
	ip -n "$1" link set lo up
}

# link NODE INTERFACE NODE INTERFACE
link() {
	ip link add "$2" netns "$1" type veth peer name "$4" netns "$3"
	ip -n "$1" link set "$2" up
	ip -n "$3" link set "$4" up
}

for each in a b c r d; do
	node $each
done
link a eth0 b eth0
link c eth0 r eth0
link d eth0 r eth1
ip -n a link set eth0 mtu 9000
ip -n b link set eth0 mtu 9000
ip -n a addr add 10.78.9.1/24 dev eth0
ip -n b addr add 10.78.9.2/24 dev eth0
ip -n c addr add 10.78.1.1/24 dev eth0
ip -n r addr add 10.78.1.2/24 dev eth0
ip -n d addr add 10.78.2.1/24 dev eth0
ip -n r addr add 10.78.2.2/24 dev eth1
ip -n c route add default via 10.78.1.2
ip -n d route add default via 10.78.2.2
ip netns exec r sysctl -q -w net.ipv4.ip_forward=1
