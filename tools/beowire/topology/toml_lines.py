# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The lines of a TOML document's keys.

The standard library's tomllib gives the values, and lines for errors of syntax only. Where a key
stands is read off the syntax tree of tree-sitter's TOML grammar, which editors use for the same
purpose; values are never taken from there.
"""

import tomllib
from collections import Counter

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

Path = tuple[str | int, ...]
"""The way to a value: keys of tables and positions in arrays, as ("links", 2, "rate")."""

_KEYS = ("bare_key", "quoted_key", "dotted_key")


def lines(text: str) -> dict[Path, int]:
    """The line, counted from 1, on which each key, table and element of an array begins. The text
    must be valid TOML."""
    tree = Parser(Language(tree_sitter_toml.language())).parse(text.encode())
    found: dict[Path, int] = {}
    elements: Counter[Path] = Counter()
    for node in tree.root_node.named_children:
        if node.type == "pair":
            _note_pair(node, (), found)
        elif node.type in ("table", "table_array_element"):
            path = _resolve(_key(node), elements)
            if node.type == "table_array_element":
                elements[path] += 1
                path = (*path, elements[path] - 1)
            _note(path, node, found)
            for pair in node.named_children:
                if pair.type == "pair":
                    _note_pair(pair, path, found)
    return found


def _note(path: Path, node: Node, found: dict[Path, int]) -> None:
    """Notes the path, and the tables on the way that nothing else has named."""
    for length in range(1, len(path) + 1):
        found.setdefault(path[:length], node.start_point.row + 1)


def _note_pair(node: Node, table: Path, found: dict[Path, int]) -> None:
    path = (*table, *_key(node))
    _note(path, node, found)
    _note_value(node.named_children[-1], path, found)


def _note_value(node: Node, path: Path, found: dict[Path, int]) -> None:
    if node.type == "inline_table":
        for pair in node.named_children:
            if pair.type == "pair":
                _note_pair(pair, path, found)
    elif node.type == "array":
        values = [child for child in node.named_children if child.type != "comment"]
        for number, value in enumerate(values):
            _note((*path, number), value, found)
            _note_value(value, (*path, number), found)


def _key(node: Node) -> tuple[str, ...]:
    """The key of a pair or table; the standard parser undoes dots and quotes."""
    text = next(child.text for child in node.named_children if child.type in _KEYS)
    assert text is not None
    value = tomllib.loads(f"{text.decode()} = 0")
    path: list[str] = []
    while isinstance(value, dict):
        ((name, value),) = value.items()
        path.append(name)
    return tuple(path)


def _resolve(keys: tuple[str, ...], elements: Counter[Path]) -> Path:
    """A header's way: where it leads through an array of tables, into the last element. An array
    header's own name stays without position."""
    path: Path = ()
    for number, key in enumerate(keys):
        path = (*path, key)
        if number < len(keys) - 1 and elements[path]:
            path = (*path, elements[path] - 1)
    return path
