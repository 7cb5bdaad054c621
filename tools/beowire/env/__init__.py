# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The variables by which an MPI goes over Beowire, for a shell or a module file."""
