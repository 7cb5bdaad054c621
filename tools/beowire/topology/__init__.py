# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Topologies: which nodes, switches and routers a lab has, and what its links do to frames."""
