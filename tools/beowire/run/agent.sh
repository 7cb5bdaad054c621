#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Stands in for ssh when an MPI launcher starts its daemons on the nodes of a lab:
# agent.sh [OPTION...] NODE COMMAND... executes the command on that node. The directory of the lab,
# which holds one script per node that enters it, is in BEOWIRE_LAB_DIR.
while case ${1-} in -*) true ;; *) false ;; esac; do
	shift
done
node=$1
shift
if [ ! -f "$BEOWIRE_LAB_DIR/$node.enter" ]; then
	echo "beowire: no node $node in the lab at $BEOWIRE_LAB_DIR" >&2
	exit 255
fi
exec sh "$BEOWIRE_LAB_DIR/$node.enter" sh -c "$*"
