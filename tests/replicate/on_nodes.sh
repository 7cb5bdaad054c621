# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# In a guest of two nodes, processor 0 at node 0 and 1 at 1: on_nodes.sh PROGRAM ARGS... of the subject
# that waits with copies. Tells what the kernel knows of memory: without copies, and with them.
plain=$1
shift
mkfifo /tmp/in

tell() {
	name=$1 cpu=$2
	shift 2
	taskset -c "$cpu" "$@" < /tmp/in > /tmp/out &
	pid=$!
	exec 9> /tmp/in
	until [ -s /tmp/out ]; do sleep 0.1; done
	sed "s/^/$name: /" "/proc/$pid/numa_maps"
	exec 9>&-
	wait "$pid" || exit 1
	: > /tmp/out
}

for node in 0 1; do
	tell "plain$node" "$node" "$plain" wait
	tell "copied$node" "$node" "$@"
done
