#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What `beowire bench overlap` runs in a guest: two nodes on a port of a given rate, their interfaces used by the
# kernel module, and an MPI program between them. Its JSON goes to the standard output.
#
#	overlap.sh PYTHON ATTACH RATE PROGRAM OPTION ...
set -eu
python=$1
attach=$2
rate=$3
shift 3
export BEOWIRE_STATE=/tmp/state HOME=/tmp
beowire() {
	"$python" -P -m beowire "$@"
}
beowire lab up overlap --nodes 2 --mtu 9000 --rate "$rate" --queue-bytes 8000000 >&2
for node in 1 2; do
	ip netns exec bw-overlap-node$node "$attach" eth0
done
status=0
beowire run --transport beowire --lab overlap -n 2 --prove -- "$@" || status=$?
beowire lab down overlap >&2
exit $status
