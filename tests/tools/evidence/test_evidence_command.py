# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire evidence` as a user runs it: real entries, a kill in the middle, and what it refuses."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from beowire import __version__
from beowire.evidence import cli, gallery, host, plot, results
from beowire.evidence.registry import ENTRIES
from beowire.lab import lab
from beowire_cli import COMMAND, beowire, no_pair

ROOT = Path(__file__).resolve().parents[3]
LARGEST_BYTES = 500_000
PATIENCE_S = 400.0
DOCUMENT, RESULTS = ROOT / "docs" / "evidence.md", ROOT / "docs" / "evidence.json"


def test_the_document_is_up_to_date() -> None:
    assert DOCUMENT.read_text() == gallery.text(results.read([RESULTS]), "evidence")


def test_the_drawings_are_those_of_the_results(tmp_path: Path) -> None:
    found = results.read([RESULTS])
    plot.write(found, tmp_path)
    drawn = {each.name for each in (DOCUMENT.parent / "evidence").iterdir()}
    assert drawn == {each.name for each in tmp_path.iterdir()}
    assert drawn == {plot.name(each) for each in plot.chosen(found)}


def test_the_document_and_what_belongs_to_it_are_small() -> None:
    files = [DOCUMENT, RESULTS, *(DOCUMENT.parent / "evidence").iterdir()]
    assert sum(each.stat().st_size for each in files) < LARGEST_BYTES


def test_nothing_that_was_to_be_measured_is_missing() -> None:
    assert not [
        each.id for each in results.read([RESULTS]).outcomes if each.why.startswith("not measured")
    ]


def test_the_document_has_all_entries() -> None:
    assert [each.id for each in results.read([RESULTS]).outcomes] == [each.id for each in ENTRIES]


def test_the_list_shows_each_entry() -> None:
    done = beowire("evidence", "--list")
    assert done.status == 0
    assert all(each.id in done.output for each in ENTRIES)
    some = beowire("evidence", "--list", "--only", "C2", "--only", "D4-channels")
    assert "C2-delay" in some.output
    assert "D4-channels" in some.output
    assert "C3-pays" not in some.output


def test_computed_entries_need_nobody(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    words = ("evidence", "--quick", "--only", "A10-amdahl", "--only", "A10-optimum")
    done = beowire(*words, "--state", str(tmp_path / "state"), "--json", str(file))
    assert done.status == 0, done.errors
    told = json.loads(file.read_text())
    assert told["version"] == __version__
    assert [each["outcome"] for each in told["entries"]] == ["agrees", "agrees"]
    first = told["entries"][0]
    assert set(first) == {
        *("id", "label", "title", "outcome", "paper", "ours", "criterion", "why", "seconds")
    }
    assert dict(first["ours"]["curves"]["Amdahl"])[8] == pytest.approx(10 / 3)
    shown = beowire("evidence", "--gallery", str(file))
    assert shown.status == 0
    assert "### A10-optimum" in shown.output


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_path_of_mixed_frames_is_found_out(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    words = ("evidence", "--quick", "--only", "D6-path", "--state", str(tmp_path / "state"))
    done = beowire(*words, "--json", str(file))
    assert done.status == 0, done.errors
    (found,) = json.loads(file.read_text())["entries"]
    assert found["outcome"] == "agrees", found["why"]
    assert found["ours"]["numbers"]["passes, other switch"] == 1500
    assert "D6-path" in done.errors


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_killed_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is held up where it would make its lab, however late it is killed then."""
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path / "labs"))
    state = tmp_path / "state"
    words = ["evidence", "--quick", "--state", str(state)]
    words += ["--only", "A10-amdahl", "--only", "D6-path"]
    with lab.locked():
        process = subprocess.Popen(
            [*COMMAND, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        until = time.monotonic() + PATIENCE_S
        while not (state.exists() and state.read_text().count("\n") == 2):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.01)
        # Told to end, as one that has a lab to take down; what it had measured is on the disk.
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
        assert process.returncode == 128 + signal.SIGTERM
    assert "goes on from there" in said
    assert [_experiment(each) for each in state.read_text().splitlines()[1:]] == ["law"]
    done = beowire(*words)
    assert done.status == 0, done.errors
    rows = [_experiment(each) for each in state.read_text().splitlines()[1:]]
    assert rows == ["law", "mixed-path"]
    assert "A10-amdahl" not in done.errors


def _experiment(row: str) -> str:
    return str(json.loads(row)["experiment"]).partition(" ")[0]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--only", "C9"), "--only C9?"),
        (("--only", ""), "--only ?"),
        (("--gallery", "/nowhere/at.json"), "cannot be read"),
        (("--gallery", str(RESULTS), "--quick"), "runs nothing"),
        (("--gallery", str(RESULTS), "--update", str(RESULTS)), "runs nothing"),
        (("--update", "/nowhere/at.json", "--only", "A10-amdahl"), "cannot be read"),
        (("--wrong",), "No such option"),
    ],
)
def test_wrong_use_is_told(words: tuple[str, ...], why: str) -> None:
    done = beowire("evidence", *words)
    assert done.status == 2
    assert why in done.errors
    assert "Traceback" not in done.errors


@pytest.mark.parametrize(("outcome", "status"), [("failed", 1), ("differs", 0), ("cannot", 0)])
def test_only_what_failed_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, outcome: str, status: int
) -> None:
    found = results.read([RESULTS])
    one = replace(found.outcomes[0], outcome=outcome)
    monkeypatch.setattr(cli, "_run", lambda *_: replace(found, outcomes=(one,)))
    with pytest.raises(typer.Exit) if status else contextlib.nullcontext() as ended:
        cli.evidence(quick=True)
    assert (ended.value.exit_code if ended is not None else 0) == status


def _told() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(RESULTS.read_text())
    return told


def _without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda told: told.pop(name)


def _set(name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda told: told.update({name: value})


def _in_entry(name: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda told: told["entries"][0].update({name: value})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_set("version", "0.0.9"), "of another version: its version is '0.0.9'"),
        (_set("format", 99), "its format is 99"),
        (_set("writer", "somebody"), "no file of"),
        (_set("entries", 5), "damaged"),
        (_set("entries", [5]), "damaged"),
        (_set("load", [1]), "damaged"),
        (_set("host", "here"), "damaged"),
        (_without("run"), "damaged"),
        (_in_entry("outcome", "perhaps"), "damaged"),
        (_in_entry("ours", {"numbers": {"x": "NaN"}}), "damaged"),
        (_in_entry("id", "Z9"), "an entry Z9"),
        (_in_entry("criterion", "whatever"), "by another criterion"),
        (_in_entry("load", [1, 2]), "damaged"),  # without a commit
        (lambda told: told["entries"].append(told["entries"][0]), "an entry twice"),
    ],
)
def test_results_that_are_not_ours_are_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], why: str
) -> None:
    told = _told()
    change(told)
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(told))
    with pytest.raises(results.BeowireError) as error:
        results.read([file])
    assert why in str(error.value)
    assert str(file) in str(error.value)
    assert error.value.code == 2


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_truncated_results_are_refused(tmp_path: Path, share: float) -> None:
    text = RESULTS.read_text()
    file = tmp_path / "short.json"
    file.write_text(text[: int(share * len(text))])
    done = beowire("evidence", "--gallery", str(file))
    assert done.status == 2
    assert "no whole JSON" in done.errors
    assert not done.output


def test_deep_json_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text("[" * 200_000)
    with pytest.raises(results.BeowireError, match="no whole JSON"):
        results.read([file])


def test_parts_of_one_run_go_together_and_of_two_hosts_do_not(tmp_path: Path) -> None:
    whole = _told()
    files = []
    for number, entries in enumerate((whole["entries"][3:], whole["entries"][:3])):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps({**whole, "entries": entries}))
        files.append(file)
    assert gallery.text(results.read(files), "evidence") == DOCUMENT.read_text()
    for name, value in (("host", {"mark": "elsewhere"}), ("commit", "0"), ("run", "full")):
        files[1].write_text(json.dumps({**whole, "entries": whole["entries"][:3], name: value}))
        with pytest.raises(results.BeowireError, match=f"do not belong together: {name}"):
            results.read(files)
    files[1].write_text(json.dumps(whole))
    with pytest.raises(results.BeowireError, match="in a file before it"):
        results.read(files)


def _measured_here(place: Path) -> tuple[Path, dict[str, Any]]:
    """The document's results as if this machine had measured them, all in one run."""
    told = {**_told(), "host": host.find()}
    for entry in told["entries"]:
        entry.pop("commit", None)
        entry.pop("load", None)
    file = place / "kept.json"
    file.write_text(json.dumps(told))
    return file, told


def test_an_entry_is_measured_anew_and_tells_when(tmp_path: Path) -> None:
    file, before = _measured_here(tmp_path)
    before["entries"][0]["why"] = "whatever"
    file.write_text(json.dumps(before))
    words = ("evidence", "--quick", "--only", "A10-amdahl", "--state", str(tmp_path / "state"))
    done = beowire(*words, "--update", str(file))
    assert done.status == 0, done.errors
    after = json.loads(file.read_text())
    first, others = after["entries"][0], after["entries"][1:]
    assert "Amdahl@8 is 3.33" in first["why"]
    assert first["commit"] == host.commit()
    assert len(first["load"]) == 2
    assert others == before["entries"][1:]
    assert (after["commit"], after["load"]) == (before["commit"], before["load"])
    shown = gallery.text(results.read([file]))
    assert "1 were measured anew later" in shown
    low, high = first["load"]
    anew = f"- Measured anew at commit {host.commit()}, at a load of {low:.1f} to {high:.1f}."
    assert shown.count("Measured anew") == shown.count(anew) == 1
    # and once more, of what has been updated already
    kept = results.read([file])
    again = results.updated(file, replace(kept, outcomes=kept.outcomes[3:4], commit="later"))
    assert [each.commit for each in again.outcomes[:5]] == [host.commit(), "", "", "later", ""]
    assert len(again.outcomes) == len(kept.outcomes)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"host": {"mark": "elsewhere"}}, "mark 'elsewhere', not '"),
        ({"host": {**host.find(), "kernel": "6.0.0"}}, "kernel '6.0.0', not '"),
        ({"run": "full"}, "run 'full', not 'quick'"),
    ],
    ids=["machine", "kernel", "run"],
)
def test_what_was_measured_otherwise_is_not_updated(
    tmp_path: Path, other: dict[str, Any], why: str
) -> None:
    """It is refused before anything is measured, and stays as it is."""
    file, told = _measured_here(tmp_path)
    file.write_text(json.dumps({**told, **other}))
    before, state = file.read_text(), tmp_path / "state"
    words = ("evidence", "--quick", "--only", "A10-amdahl", "--state", str(state))
    done = beowire(*words, "--update", str(file))
    assert done.status == 2
    assert why in " ".join(done.errors.split())
    assert file.read_text() == before
    assert not state.exists()


def test_text_of_programs_is_text(tmp_path: Path) -> None:
    told = _told()
    told["entries"][0]["why"] = "<script>\nalert(1)</script> | [a](http://b)"
    file = tmp_path / "odd.json"
    file.write_text(json.dumps(told))
    shown = gallery.text(results.read([file]))
    assert "&lt;script> alert(1)&lt;/script> \\| \\[a](http://b)" in shown
