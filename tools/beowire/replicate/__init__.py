# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that run from copies of their text on the NUMA node where they run."""
