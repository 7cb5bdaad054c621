# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs: virtual clusters on this machine, of network namespaces and links that can be harmed."""
