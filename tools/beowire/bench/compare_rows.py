# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What files of results hold that can be compared: for each command that writes one, its numbers by
name, with the values of their rounds where the file has them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beowire.bench import result_file
from beowire.bench.apps import store as apps_store
from beowire.bench.load import store as load_store
from beowire.bench.matrix import store as matrix_store
from beowire.errors import BeowireError

FILE_MAX = 256 << 20
"""Bytes; a load's rounds have every message."""
Told = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """One number of a file."""

    name: str
    unit: str
    lower_is_better: bool
    value: float | None = None
    """None: it is the geometric mean of the rounds."""
    rounds: tuple[float, ...] = ()
    low: float | None = None
    high: float | None = None
    """The interval of the value, where the file has one and no rounds."""


@dataclass(frozen=True)
class Results:
    """What a file holds."""

    path: Path
    writer: str
    rows: dict[str, Row]
    setting: dict[str, Any] = field(default_factory=dict)
    """How it came about, by name."""


def read(path: Path) -> Results:
    """A file of results. Raises BeowireError if it is none, of another version, or damaged."""
    told = _load(path)
    writer, version = told.get("writer"), told.get("format")
    if writer not in KINDS:
        raise BeowireError(
            f"{path} is no file that a `beowire bench` command wrote by --json.",
            f"Those of these can be compared: {', '.join(KINDS)}.",
            2,
        )
    known = _FORMATS.get(writer, result_file.FORMAT)
    if version != known:
        raise BeowireError(
            f"{path} is of `{writer}` in format {version}, not {known}.",
            "Compare files of the same version.",
            2,
        )
    try:
        rows = {each.name: each for each in KINDS[writer](told)}
        for each in rows.values():
            _check(each)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise BeowireError(
            f"{path} has a row that cannot be read: {error!r}.", "Name another file.", 2
        ) from error
    return Results(path, writer, rows, _setting(told))


def _load(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > FILE_MAX:
            raise BeowireError(f"{path} has more than {FILE_MAX >> 20} MiB.", "Name another.", 2)
        told = json.loads(path.read_bytes())
    except OSError as error:
        raise BeowireError(
            f"{path} cannot be read: {error.strerror}.", "Name another.", 2
        ) from error
    except (ValueError, RecursionError) as error:
        raise BeowireError(f"{path} is no JSON.", "Name a file that --json wrote.", 2) from error
    return told if isinstance(told, dict) else {}


def _check(row: Row) -> None:
    """Only numbers above zero have ratios."""
    numbers = [each for each in (row.value, row.low, row.high, *row.rounds) if each is not None]
    if not row.rounds and row.value is None:
        raise ValueError(f"{row.name} has no value")
    for each in numbers:
        if not isinstance(each, int | float) or not 0 <= each < float("inf"):
            raise ValueError(f"{row.name}: {each}")


def _setting(told: Told) -> dict[str, Any]:
    from beowire.tabular import flat

    names = ("setting", "machine", "plan", "lab", "line", "kernel", "mpi", "rounds")
    return flat({name: told[name] for name in names if isinstance(told.get(name), dict | str)})


def _ratio(name: str, told: Told, lower_is_better: bool) -> Row:
    return Row(
        name, "ratio", lower_is_better, told["value"], low=told.get("low"), high=told.get("high")
    )


def _pingpong(told: Told) -> Iterator[Row]:
    for each in told["figures"]:
        name, lower = f"{each['mode']} {each['size_bytes']} B", each["lower_is_better"]
        for carrier in ("beowire", "tcp"):
            yield Row(f"{name} {carrier}", each["unit"], lower, each[carrier]["p50"])
        yield _ratio(f"{name} beowire/tcp", each["ratio"], lower)


def _cells(told: Told, names: Sequence[str], lower: bool | None) -> Iterator[Row]:
    for each in told["cells"]:
        name = " ".join(str(each[part]) for part in names)
        better = bool(each["lower_is_better"]) if lower is None else lower
        for carrier, values in each["values"].items():
            yield Row(f"{name} {carrier}", each["unit"], better, rounds=tuple(values))
        yield Row(
            f"{name} beowire/{each.get('stack', 'tcp')}",
            *("ratio", better, each["ratio"]),
            low=each["low"],
            high=each["high"],
        )


def _matrix(told: Told) -> Iterator[Row]:
    return _cells(told, ("figure", "bytes", "link", "mtu", "mpi"), None)


def _apps(told: Told) -> Iterator[Row]:
    return _cells(told, ("application", "figure", "ranks", "nodes"), True)


def _exchange(told: Told) -> Iterator[Row]:
    for each in told["figures"]:
        name = f"{each['setting']}, {each['calls']}, {each['type']}, {each['size_bytes']} B"
        yield Row(name, "MB/s", False, rounds=tuple(each["rounds_mb_per_s"]))


def _kernel(told: Told) -> Iterator[Row]:
    for figure in told["figures"]:
        for each in figure["rows"]:
            # Guests that agree to the last bit leave nothing to chance.
            exact = figure["unit"] == "instructions" and told["identical"]
            sure = each["value"] if exact else None
            name = f"{figure['name']} {each['case']}"
            yield Row(name, figure["unit"], True, each["value"], low=sure, high=sure)


def _overlap(told: Told) -> Iterator[Row]:
    names = ("transfer", "computing", "both at once")
    for name, values in zip(names, zip(*told["rounds"], strict=True), strict=True):
        yield Row(name, "ns", True, rounds=values)


def _sockets(told: Told) -> Iterator[Row]:
    for each in told["figures"]:
        for carrier in ("beowire", "tcp"):
            name = f"{each['figure']} {carrier}"
            yield Row(name, each["unit"], each["lower_is_better"], rounds=tuple(each[carrier]))


def _stripe(told: Told) -> Iterator[Row]:
    yield Row("all links", "bit/s", False, rounds=tuple(told["together_bits"]))
    for number, values in enumerate(zip(*told["alone_bits"], strict=True), 1):
        yield Row(f"link {number} alone", "bit/s", False, rounds=values)


def _idle(told: Told) -> Iterator[Row]:
    for link, numbers in told["times_us"].items():
        for idle, values in numbers.items():
            yield Row(f"{link}, {idle} idle", "us", True, rounds=tuple(values))


def _start(told: Told) -> Iterator[Row]:
    for each in told["figures"]:
        for carrier in ("beowire", "tcp"):
            name = f"{each['way']}, {each['ranks']} ranks, {carrier}"
            yield Row(name, "s", True, rounds=tuple(each[f"{carrier}_s"]))


def _line(told: Told) -> Iterator[Row]:
    valid = [run for run in told["runs"] if run["valid"]]
    for flow in dict.fromkeys(run["flow"] for run in valid):
        own = [run for run in valid if run["flow"] == flow]
        yield Row(f"{flow} rate", "bit/s", False, rounds=tuple(run["bits"] for run in own))
        if all(run["ping_us"] for run in own):
            pings = tuple(run["ping_us"]["p99"] for run in own)
            yield Row(f"{flow} ping p99", "us", True, rounds=pings)


def _load_figures(told: Told) -> Iterator[Row]:
    for each in told.get("figures", []):
        name = (
            f"{each['load']}, {each['low_bytes']} to {each['high_bytes']} B, {each['percentile']}"
        )
        for carrier in ("beowire", "tcp"):
            if each[carrier] is not None:
                yield Row(f"{name}, {carrier}", "slowdown", True, each[carrier])
        if each["ratio"] is not None:
            name = f"{name}, beowire/tcp"
            yield Row(name, "ratio", True, each["ratio"], low=each["low"], high=each["high"])


def _wan(told: Told) -> Iterator[Row]:
    for each in told["rows"]:
        point = " ".join(f"{name}={value}" for name, value in _sorted(each["point"]))
        yield Row(f"{each['sweep']} {point}", "s", True, each["time_s"])
    for name, found in told["over_tcp"].items():
        yield _ratio(f"{name} beowire/tcp", found, True)


def _sorted(told: Told) -> list[tuple[str, Any]]:
    from beowire.tabular import flat

    return sorted(flat(told).items())


_FORMATS = {store.WRITER: store.FORMAT for store in (apps_store, load_store, matrix_store)}
"""Of those that a measurement goes on with."""
KINDS: dict[str, Callable[[Told], Iterator[Row]]] = {
    "beowire bench apps": _apps,
    "beowire bench exchange": _exchange,
    "beowire bench idle": _idle,
    "beowire bench kernel": _kernel,
    "beowire bench line": _line,
    "beowire bench load": _load_figures,
    "beowire bench matrix": _matrix,
    "beowire bench overlap": _overlap,
    "beowire bench pingpong": _pingpong,
    "beowire bench sockets": _sockets,
    "beowire bench start": _start,
    "beowire bench stripe": _stripe,
    "beowire bench wan": _wan,
}
