#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# In both of two guests: sockets of the module talk over eth0, and beside them on the same interface an endpoint
# of libbeowire over bare frames, in the second guest, with one that is a port of the module and with one like
# itself. At the end what the nodes have refused.
#
#	beside.sh EXCHANGE PINGPONG STATS
set -eu
exchange=$1
pingpong=$2
export BEOWIRE_STATS="$3"

pair() {
	name=$1
	link=$2
	if [ "$BEOWIRE_GUEST" = 2 ]; then
		BEOWIRE_LINKS=packet timeout 300 "$pingpong" --once --wait block >/dev/null 2>"/tmp/$name" &
		server=$!
		until grep -q "waiting for a client" "/tmp/$name" || ! kill -0 "$server" 2>/dev/null; do
			sleep 0.1
		done
		meet "$name.open"
		wait "$server" || {
			cat "/tmp/$name"
			exit 1
		}
	else
		meet "$name.open"
		BEOWIRE_LINKS=$link timeout 300 "$pingpong" --transport beowire --wait block --rounds 1 \
			--iterations 4 --size 8,3000,30000 10.0.0.2
	fi
	meet "$name.over"
}

"$exchange" 2 first >/dev/null # attaches eth0
"$exchange" 20 second &
talk=$!
pair mixed kernel
pair packet packet
wait "$talk"
grep -E '^(unclaimed|refused|malformed)' /proc/net/beowire/node
