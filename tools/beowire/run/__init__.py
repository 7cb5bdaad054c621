# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs: one MPI program started on a cluster, watched, and gone afterwards."""
