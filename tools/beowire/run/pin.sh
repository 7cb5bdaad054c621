#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Executes its arguments on one core, chosen by the global rank. The nodes of a lab share the
# machine's cores, so that an MPI that binds by the rank on the node puts every node on core 0.
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
exec taskset -c $((rank % $(nproc))) "$@"
