# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Completion of command lines in shells: a script for each, and what the scripts ask."""
