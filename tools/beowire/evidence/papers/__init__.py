# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The entries, a file for each paper: data alone, whose criteria are fixed before anything runs."""
