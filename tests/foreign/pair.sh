#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# pair.sh SERVER CLIENT...: starts the server, a command line in one word, and then the client: as
# soon as a socket where the server is listens at the port of fabtests (9228), or at that by which
# its programs exchange addresses (3000), or after 30 s. Both must end well; whichever fails gives
# its status.
eval "exec $1" &
server=$!
shift

listens() {
	net=/proc/$server/net
	grep -qs ':\(240C\|0BB8\) 0\+:0\+ 0[A7] ' $net/tcp $net/tcp6 $net/udp $net/udp6
}

tries=0
until listens || [ $tries -ge 300 ] || ! kill -0 $server 2>/dev/null; do
	sleep 0.1
	tries=$((tries + 1))
done
"$@"
status=$?
wait $server
mine=$?
[ $status -ne 0 ] || status=$mine
exit $status
