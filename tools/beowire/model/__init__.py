# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The model of speedup: fitted to measured runs, and asked what changes would bring."""
