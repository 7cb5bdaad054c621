# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demonstration: unmodified programs over TCP and over Beowire, and its bad days."""
