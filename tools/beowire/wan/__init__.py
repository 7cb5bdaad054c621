# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs on two sites: what a line between them costs, and whether a second one pays."""
