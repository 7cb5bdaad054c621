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
class Place:
    """Where a number stands in a drawing of its file's numbers."""

    chart: str
    series: str
    across: str
    """What x is, with its unit."""
    x: float


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
    place: Place | None = None
    """None: it is one of a kind."""


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
    return decoded(path, _load(path))


def decoded(path: Path, told: dict[str, Any]) -> Results:
    """The same of what a file holds."""
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
    except (LookupError, TypeError, ArithmeticError, ValueError, AttributeError) as error:
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
    if row.place is not None:
        numbers.append(row.place.x)
    for each in numbers:
        is_number = isinstance(each, int | float) and not isinstance(each, bool)
        if not is_number or not 0 <= float(each) < float("inf"):
            raise ValueError(f"{row.name}: {each}")
    if not isinstance(row.unit, str):
        raise TypeError(f"{row.name}: its unit is {row.unit!r}")


def _setting(told: Told) -> dict[str, Any]:
    from beowire.tabular import flat

    names = ("setting", "machine", "plan", "lab", "line", "kernel", "mpi", "rounds")
    return flat({name: told[name] for name in names if isinstance(told.get(name), dict | str)})


def _ratio(name: str, told: Told, lower_is_better: bool, place: Place | None = None) -> Row:
    low, high = told.get("low"), told.get("high")
    return Row(name, "ratio", lower_is_better, told["value"], low=low, high=high, place=place)


def _pingpong(told: Told) -> Iterator[Row]:
    for each in told["figures"]:
        size, lower = each["size_bytes"], each["lower_is_better"]
        name = f"{each['mode']} {size} B"
        for carrier in ("beowire", "tcp"):
            place = Place(str(each["mode"]), carrier, _SIZE, size)
            value = each[carrier]["p50"]
            yield Row(f"{name} {carrier}", each["unit"], lower, value, place=place)
        place = Place(str(each["mode"]), "beowire/tcp", _SIZE, size)
        yield _ratio(f"{name} beowire/tcp", each["ratio"], lower, place)


def _cells(told: Told, names: Sequence[str], lower: bool | None) -> Iterator[Row]:
    """One of the names is what x is; those before it name the chart, those after it the series."""
    at = next(each for each, name in enumerate(names) if name in _ACROSS)
    for each in told["cells"]:
        words = [str(each[part]) for part in names]
        better = bool(each["lower_is_better"]) if lower is None else lower
        across, x = _ACROSS[names[at]], each[names[at]]

        def put(series: str, words: list[str] = words, x: float = x, a: str = across) -> Place:
            return Place(" ".join(words[:at]), " ".join([*words[at + 1 :], series]), a, x)

        for carrier, values in each["values"].items():
            name = " ".join([*words, carrier])
            yield Row(name, each["unit"], better, rounds=tuple(values), place=put(carrier))
        ratio = f"beowire/{each.get('stack', 'tcp')}"
        yield _ratio(
            " ".join([*words, ratio]), {**each, "value": each["ratio"]}, better, put(ratio)
        )


def _matrix(told: Told) -> Iterator[Row]:
    return _cells(told, ("figure", "bytes", "link", "mtu", "mpi"), None)


def _apps(told: Told) -> Iterator[Row]:
    return _cells(told, ("application", "figure", "ranks", "nodes"), True)


def _exchange(told: Told) -> Iterator[Row]:
    for each in told["figures"]:
        name = f"{each['setting']}, {each['calls']}, {each['type']}, {each['size_bytes']} B"
        place = Place(
            f"{each['calls']}, {each['type']}", each["setting"], _SIZE, each["size_bytes"]
        )
        yield Row(name, "MB/s", False, rounds=tuple(each["rounds_mb_per_s"]), place=place)


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
            place = Place("endpoints that idle", link, "idle endpoints", float(idle))
            yield Row(f"{link}, {idle} idle", "us", True, rounds=tuple(values), place=place)


def _start(told: Told) -> Iterator[Row]:
    for each in told["figures"]:
        for carrier in ("beowire", "tcp"):
            name = f"{each['way']}, {each['ranks']} ranks, {carrier}"
            place = Place(str(each["way"]), carrier, "ranks", each["ranks"])
            yield Row(name, "s", True, rounds=tuple(each[f"{carrier}_s"]), place=place)


def _line(told: Told) -> Iterator[Row]:
    valid = [run for run in told["runs"] if run["valid"]]
    for flow in dict.fromkeys(run["flow"] for run in valid):
        own = [run for run in valid if run["flow"] == flow]
        yield Row(f"{flow} rate", "bit/s", False, rounds=tuple(run["bits"] for run in own))
        if all(run["ping_us"] for run in own):
            pings = tuple(run["ping_us"]["p99"] for run in own)
            yield Row(f"{flow} ping p99", "us", True, rounds=pings)


def _load_figures(told: Told) -> Iterator[Row]:
    longest = max((each["high_bytes"] for each in told.get("figures", [])), default=0)
    for each in told.get("figures", []):
        name = (
            f"{each['load']}, {each['low_bytes']} to {each['high_bytes']} B, {each['percentile']}"
        )
        chart = f"load {each['load']}"

        def put(series: str, told: Told = each, chart: str = chart) -> Place | None:
            if not told["low_bytes"] and told["high_bytes"] == longest:
                return None  # all messages, which are none of the classes
            series = f"{told['percentile']}, {series}"
            return Place(chart, series, "messages of at most (B)", told["high_bytes"])

        for carrier in ("beowire", "tcp"):
            if each[carrier] is not None:
                place = put(carrier)
                yield Row(f"{name}, {carrier}", "slowdown", True, each[carrier], place=place)
        if each["ratio"] is not None:
            ratio = {**each, "value": each["ratio"]}
            yield _ratio(f"{name}, beowire/tcp", ratio, True, put("beowire/tcp"))


def _wan(told: Told) -> Iterator[Row]:
    for each in told["rows"]:
        point = " ".join(f"{name}={value}" for name, value in _sorted(each["point"]))
        yield Row(f"{each['sweep']} {point}", "s", True, each["time_s"])
    for name, found in told["over_tcp"].items():
        yield _ratio(f"{name} beowire/tcp", found, True)


def _sorted(told: Told) -> list[tuple[str, Any]]:
    from beowire.tabular import flat

    return sorted(flat(told).items())


_SIZE = "message size (B)"
_ACROSS = {"bytes": _SIZE, "ranks": "ranks"}
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
