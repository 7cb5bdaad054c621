# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the instructions of a round trip go, by function of the kernel, a module or the program."""

import bisect
import json
import subprocess
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.vm import kernels, machine
from beowire.vm.debugger import Debugger

_USER_END = 1 << 47
_CODE = "tTwW"


@dataclass(frozen=True)
class Share:
    """What one function executes, per round trip."""

    function: str
    place: str
    """A module's name, `kernel` or `program`."""
    own: float
    whole: float
    """With what it calls, and with what interrupts it."""
    calls: float


@dataclass(frozen=True, order=True)
class Symbol:
    """A function's first address."""

    address: int
    name: str
    place: str


_UNKNOWN = Symbol(-1, "?", "program")


class Symbols:
    """Functions by address; of several at one address the first by name stands for all."""

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        by_address: dict[int, Symbol] = {}
        for symbol in sorted(symbols):
            by_address.setdefault(symbol.address, symbol)
        self._symbols = list(by_address.values())
        self._addresses = list(by_address)

    def at(self, address: int) -> Symbol:
        at = bisect.bisect_right(self._addresses, address)
        found = self._symbols[at - 1] if at else _UNKNOWN
        if (found.address < _USER_END) != (address < _USER_END):
            return _UNKNOWN
        return found


def of_kernel(kernel: kernels.Kernel, name: str) -> list[Symbol]:
    """The kernel's own, as it tells them itself (its addresses are the same at every boot).

    `name` is what --kernel calls it."""
    kept = kernel.tree / "kallsyms"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=kernel.tree) as directory:
            share = Path(directory)
            command = ["sh", "-c", f"cat /proc/kallsyms > {share}/kallsyms"]
            outcome = machine.run(machine.Guest(command, name, shares=[share]))
            if outcome.exit_status or outcome.complaints:
                raise BeowireError("A guest does not tell its kernel's symbols.")
            (share / "kallsyms").rename(kept)
    symbols = []
    for line in kept.read_text().splitlines():
        address, kind, name, *module = line.split()
        if kind in _CODE and not module:
            symbols.append(Symbol(int(address, 16), name, "kernel"))
    return symbols


def of_modules(output: str) -> list[Symbol]:
    """Those of modules, as the guest's program tells them."""
    symbols = []
    for line in output.splitlines():
        told = json.loads(line)
        if "symbol" in told:
            symbols.append(Symbol(told["address"], told["symbol"], told["module"]))
    return symbols


def of_program(program: Path) -> list[Symbol]:
    nm = places.program("nm", "binutils")
    told = subprocess.run([nm, str(program)], capture_output=True, text=True, check=True).stdout
    symbols = []
    for line in told.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in _CODE:
            symbols.append(Symbol(int(words[0], 16), words[2], "program"))
    return symbols


class Recorder:
    """Follows a guest: keeps what it executes between the program's two marks, each time."""

    def __init__(self, program: Path) -> None:
        marks = {symbol.name: symbol.address for symbol in of_program(program)}
        self._begin = marks["bench_mark_begin"]
        self._end = marks["bench_mark_end"]
        self.traces: list[array[int]] = []

    def follow(self, path: Path) -> None:
        with Debugger(path) as debugger:
            while debugger.run_to(self._begin):
                self.traces.append(debugger.executed(self._end, path.with_name("executed")))


class Walk:
    """Follows executed addresses through calls and returns.

    The first address of a function is a call (or a jump that ends the caller, which is as good);
    any other address outside the current function is a return to it. A switch between processes
    returns to where nobody called from: then what was known of callers is forgotten.
    """

    def __init__(self) -> None:
        self.own: Counter[Symbol] = Counter()
        self.whole: Counter[Symbol] = Counter()
        self.calls: Counter[Symbol] = Counter()
        self._stack: list[Symbol] = []
        self._since: dict[Symbol, int] = {}
        self._now = 0

    def step(self, address: int, symbol: Symbol) -> None:
        if address == symbol.address:
            self.calls[symbol] += 1
            self._enter(symbol)
        elif not self._stack or self._stack[-1] is not symbol:
            self._return_to(symbol)
        self.own[symbol] += 1
        self._now += 1

    def end(self) -> None:
        while self._stack:
            self._leave()

    def _enter(self, symbol: Symbol) -> None:
        if self._stack and self._stack[-1] is symbol:
            return  # a loop, or a call of itself
        self._stack.append(symbol)
        self._since.setdefault(symbol, self._now)

    def _leave(self) -> None:
        symbol = self._stack.pop()
        if symbol not in self._stack:
            self.whole[symbol] += self._now - self._since.pop(symbol)

    def _return_to(self, symbol: Symbol) -> None:
        while self._stack and self._stack[-1] is not symbol:
            self._leave()
        if not self._stack:
            self._enter(symbol)


def shares(trace: Iterable[int], symbols: Symbols, trips: int) -> list[Share]:
    """Executed addresses by function, the largest first."""
    known: dict[int, Symbol] = {}
    walk = Walk()
    for address in trace:
        symbol = known.get(address)
        if symbol is None:
            symbol = known[address] = symbols.at(address)
        walk.step(address, symbol)
    walk.end()
    return [
        Share(
            symbol.name,
            symbol.place,
            times / trips,
            walk.whole[symbol] / trips,
            walk.calls[symbol] / trips,
        )
        for symbol, times in walk.own.most_common()
    ]
