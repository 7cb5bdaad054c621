#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# begin.sh DIR PROGRAM...: leaves a file in DIR, named by the rank, and becomes the program. So
# whoever started a job sees which of its ranks have begun, whatever became of them.
: >"$1/${OMPI_COMM_WORLD_RANK-${PMI_RANK-none}}"
shift
exec "$@"
