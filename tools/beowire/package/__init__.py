# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages for the distribution: made from the sources, and a repository of them."""
