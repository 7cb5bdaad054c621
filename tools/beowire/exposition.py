# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prometheus' text format (exposition format 0.0.4), line by line."""

from collections.abc import Mapping


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """One value of a metric."""
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{pairs}}} {value:.12g}"


def head(name: str, kind: str, says: str) -> list[str]:
    """What stands above a metric's samples."""
    return [f"# HELP {name} {says}", f"# TYPE {name} {kind}"]
