# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files of results as a report: a page, or the same as Markdown, CSV or drawings."""
