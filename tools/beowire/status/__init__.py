# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the endpoints of a node, a cluster or a job are doing now (docs/status.md)."""
