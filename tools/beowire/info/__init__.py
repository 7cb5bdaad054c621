# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What this host can use: its links, and what each MPI would choose."""
