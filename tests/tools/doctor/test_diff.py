# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`doctor diff`: two recorded nodes, or what --json kept of them."""

import json
from pathlib import Path

import pytest
from beowire.doctor import diff
from beowire.doctor.cli import app
from beowire.errors import BeowireError
from test_health import doctor, tree_at
from typer.testing import CliRunner


def as_json(tree: Path) -> Path:
    """The same node as a file of --json."""
    file = tree.with_suffix(".json")
    file.write_text(doctor("--root", str(tree), "--json").stdout)
    return file


def test_a_node_is_like_itself_in_both_forms(tmp_path: Path) -> None:
    tree = tree_at(tmp_path / "n", tcp_sack="0\n")
    for one in (tree, as_json(tree)):
        for other in (tree, as_json(tree)):
            told = doctor("diff", str(one), str(other))
            assert told.exit_code == 0, told.output
            assert "No fact, setting or finding differs" in told.stdout


def test_what_differs_is_told(tmp_path: Path) -> None:
    one = tree_at(tmp_path / "a", tcp_sack="1\n", tcp_timestamps="0\n", tcp_reordering="3\n")
    other = tree_at(tmp_path / "b", tcp_sack="0\n", tcp_timestamps="0\n", tcp_reordering="3\n")
    (other / "proc" / "cpuinfo").write_text("processor : 0\nmicrocode : 0x12\n\n")
    told = doctor("diff", str(one), str(other), "--json")
    assert told.exit_code == 1, told.output
    rows = {(each["kind"], each["name"]): each for each in json.loads(told.stdout)["differences"]}
    sack = rows[("finding", "tcp.sack")]
    assert (sack["a"], sack["b"]) == ("good", "net.ipv4.tcp_sack = 0")
    assert rows[("fact", "microcode")] == {
        "kind": "fact", "name": "microcode", "a": None, "b": "0x12"
    }  # fmt: skip
    assert not [name for _, name in rows if "timestamps" in name]
    people = doctor("diff", str(one), str(other)).stdout
    assert "tcp.sack" in people
    assert "A: good" in people
    assert doctor("diff", str(one), str(other), "--format", "csv").stdout.startswith(
        "kind,name,a,b"
    )


def test_parameters_that_a_record_leaves_out_are_no_difference(tmp_path: Path) -> None:
    tree = tree_at(tmp_path / "n")
    (tree / "proc" / "cmdline").write_text("quiet secret preempt=full\n")
    node = diff.read(tree, "latency")
    whole = diff.Examined(
        tmp_path / "f", "n1", "latency",
        {**node.facts, "kernel parameters": "quiet secret=word preempt=full"},
        node.settings, node.findings, node.states,
    )  # fmt: skip
    assert not diff.between(node, whole)
    changed = {**node.facts, "kernel parameters": "quiet secret=word"}
    assert diff.between(node, diff.replace(whole, facts=changed))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[1]", "is no examination"),
        ("{}", "is no examination"),
        ('{"outcomes": [1]}', "is no examination"),
    ],
)
def test_another_file_is_refused(text: str, said: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text(text)
    with pytest.raises(BeowireError, match=said) as refused:
        diff.read(bad, "latency")
    assert refused.value.code == 2
    assert str(bad) in refused.value.what


def test_goals_that_differ_and_missing_files_are_refused(tmp_path: Path) -> None:
    tree = tree_at(tmp_path / "n")
    with pytest.raises(BeowireError, match="examined for latency") as refused:
        diff.between(diff.read(tree, "latency"), diff.read(tree, "wan"))
    assert refused.value.code == 2
    with pytest.raises(BeowireError, match="cannot be read"):
        diff.read(tmp_path / "none", "latency")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BeowireError):
        diff.read(empty, "latency")
    assert CliRunner().invoke(app, ["diff", str(tree)]).exit_code == 2
