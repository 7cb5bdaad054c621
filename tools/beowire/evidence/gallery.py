# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results as a document: all entries by paper, what the paper has, what we have, and the verdict.

The text is made from the results alone, so that the document can be compared with them.
"""

from collections import Counter

from beowire.evidence import plot, shown
from beowire.evidence.figures import Curve
from beowire.evidence.outcome import AGREES, CANNOT, DIFFERS, FAILED, Outcome
from beowire.evidence.registry import ENTRIES, PAPERS
from beowire.evidence.results import Results, entry_of

_HEAD = """<!-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause -->
<!-- Made by `beowire evidence --gallery docs/evidence.json --plots docs/evidence`. -->
# Evidence

Five papers describe what Beowire implements. `./beowire evidence` runs their tables, figures and
stated numbers again and says whether our measurements agree. Each entry has a criterion that was
fixed before anything was measured. It asks for a shape: an order, a ratio, a curve that rises or
falls, a knee; never for another decade's absolute time.

```
./beowire evidence --quick                 # a quarter of an hour; as root
./beowire evidence                         # hours; goes on where it was interrupted
./beowire evidence --only C2 --only D4     # entries, labels, or a paper: C
./beowire evidence --list                  # what there is
./beowire evidence --quick --json docs/evidence.json
./beowire evidence --quick --only E3 --update docs/evidence.json   # these entries anew
./beowire evidence --gallery docs/evidence.json --plots docs/evidence > docs/evidence.md
```

- **agrees**: the criterion holds.
- **differs**: it does not. Where an explanation is known it was tested, and the entry says whether
  it holds.
- **cannot**: this machine or version lacks what the entry needs.
- **failed**: the experiment ended with an error; the next call tries it again.

[beowire-evidence(1)](man/beowire-evidence.1) has the options.
"""
_TAIL = """## Add an entry

An entry is a value in one of the modules of `tools/beowire/evidence/papers/`: what the paper has
and where, the experiment with its parameters for `--quick` and for a whole run, the criterion, and
an explanation to be tested where ours may differ. A criterion refers to numbers (`name`) and to
points of curves (`name@x`, `name@first`, `name@last`, `name@most`, `name@least`) of what the
experiment returns. Fix it before you run the experiment, and leave it as it is afterwards: what
differs is a result, too.

| file in `tools/beowire/evidence/` | what it has |
|---|---|
| `papers/` | the entries, a module for each paper; the thesis has two |
| `entry.py`, `registry.py` | an entry; all of them, and which are asked for |
| `figures.py`, `criterion.py`, `outcome.py` | numbers, curves; what must hold; what came of it |
| `experiment.py`, `experiments/` | an experiment and its time; what each measures |
| `runner.py`, `state.py` | running what is missing; what is measured already |
| `results.py`, `host.py` | the file of `--json`; the machine that measured |
| `gallery.py`, `plot.py`, `shown.py` | this page; drawings; which curves are shown |
| `cli.py` | the command line |
"""
_MOST_POINTS = 12
_COUNTED = {AGREES: "agree", DIFFERS: "differ", CANNOT: "cannot be run", FAILED: "failed"}


def text(results: Results, plots: str = "") -> str:
    """The whole document; `plots` is where its drawings lie, as seen from it."""
    parts = [_HEAD, _about(results), _overview(results)]
    drawn = plot.chosen(results)
    for letter, title in PAPERS.items():
        own = [each for each in results.outcomes if entry_of(each).label[0] == letter]
        if own:
            parts.append(f"## {letter}. {title}\n")
            parts += [_entry(each, plots if each in drawn else "") for each in own]
    return "\n".join([*parts, _TAIL]).rstrip() + "\n"


def _about(results: Results) -> str:
    host, (low, high) = results.host, results.load
    cores = int(host.get("cores", 0))
    busy = high > cores
    told = (
        "Other work ran beside it: times by the clock are those of a busy machine, and say little "
        "of speed. Instruction counts are not touched by that."
        if busy
        else "Nothing much ran beside it."
    )
    return (
        "## This run\n\n"
        f"A {results.run} run, at commit {results.commit or 'unknown'}, on a machine with {cores} "
        f"cores ({host.get('processor')}), {host.get('memory_gib')} GiB, Linux "
        f"{host.get('kernel')}, {host.get('architecture')}. The load (threads that run or want to) "
        f"was {low:.1f} to {high:.1f}. {told}\n"
    )


def _overview(results: Results) -> str:
    counts = Counter(each.outcome for each in results.outcomes)
    seconds = sum(each.seconds for each in results.outcomes)
    told = ", ".join(f"{counts[name]} {words}" for name, words in _COUNTED.items() if counts[name])
    anew = sum(each.load is not None for each in results.outcomes)
    later = f" {anew} were measured anew later, as they tell." if anew else ""
    missing = len(ENTRIES) - len(results.outcomes)
    not_run = f" {missing} entries were not run." if missing else ""
    lines = [
        f"{len(results.outcomes)} entries in {seconds / 60:.0f} minutes: {told}.{later}{not_run}\n",
        "| entry | what | outcome |",
        "|---|---|---|",
    ]
    lines += [
        f"| [{each.id}](#{each.id.lower()}) | {entry_of(each).title} | {each.outcome} |"
        for each in results.outcomes
    ]
    return "\n".join(lines) + "\n"


def _entry(found: Outcome, plots: str) -> str:
    entry = entry_of(found)
    paper = f"- **The paper** [{entry.label}], {entry.paper.where}: {entry.paper.says}."
    lines = [f"### {found.id}\n", f"**{entry.title}.**\n", paper]
    lines.append(f"- **Criterion**: {_safe(entry.criterion.text())}.")
    lines.append(f"- **{found.outcome.capitalize()}**: {_safe(_ended(found.why))}")
    if found.load is not None:
        low, high = found.load
        lines.append(
            f"- Measured anew at commit {_safe(found.commit or 'unknown')}, at a load of {low:.1f} "
            f"to {high:.1f}."
        )
    if found.ours is not None:
        lines += [f"- {_safe(_ended(_begun(each)))}" for each in found.ours.remarks]
        table = _table(shown.curves(entry, found.ours), entry.across, entry.up)
        lines += ["", table] if table else []
    if plots:
        lines += ["", f"![{found.id}]({plots}/{plot.name(found)})"]
    return "\n".join(lines) + "\n"


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _safe(words: str) -> str:
    """Text of programs as text, in one line."""
    escaped = " ".join(words.split()).replace("<", "&lt;").replace("|", "\\|")
    return escaped.replace("[", "\\[") if "](" in escaped else escaped


def _table(curves: dict[str, Curve], across: str, up: str) -> str:
    """The curves, if they have not too many points."""
    xs = sorted({x for each in curves.values() for x, _ in each})
    if not 0 < len(xs) <= _MOST_POINTS:
        return ""
    heads = " | ".join(map(_number, xs))
    rows = [f"| {across}, {up} | {heads} |", f"|---{'|---' * len(xs)}|"]
    rows += [f"| {name} | {_cells(each, xs)} |" for name, each in curves.items()]
    return "\n".join(rows)


def _cells(curve: Curve, xs: list[float]) -> str:
    values = dict(curve)
    return " | ".join(_number(values[x]) if x in values else "" for x in xs)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
