# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where programs run and where their memory lies, on machines of several NUMA nodes."""
