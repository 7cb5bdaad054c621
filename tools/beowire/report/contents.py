# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a report holds: a section for each file, and for those that can be compared with the first
of their kind."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from beowire.bench import compare, compare_rows
from beowire.errors import BeowireError
from beowire.evidence import results
from beowire.report import compared, measured, others, papers, source
from beowire.report.section import Section
from beowire.report.source import Source

_EVIDENCE = "beowire evidence"


@dataclass(frozen=True)
class Contents:
    """Of one report."""

    sections: list[Section]
    remarks: list[str]
    """What concerns all of it."""


def of(files: list[Path]) -> Contents:
    """Raises BeowireError for a file that cannot be shown, or would be shown wrongly."""
    sources = [source.read(each) for each in files]
    remarks = [words for each in sources for words in each.remarks] + source.mixed(sources)
    sections = [*_papers(sources, remarks), *_measured(sources, remarks)]
    sections += [others.section(each) for each in sources if not _has_charts(each)]
    return Contents(sections, remarks)


def _has_charts(found: Source) -> bool:
    return found.writer == _EVIDENCE or _is_measured(found)


def _is_measured(found: Source) -> bool:
    """What `bench compare` writes has the writer of what it compared."""
    return found.writer in compare_rows.KINDS and "only_a" not in found.told


def _papers(sources: list[Source], remarks: list[str]) -> Iterator[Section]:
    files = [each.path for each in sources if each.writer == _EVIDENCE]
    if not files:
        return
    names = ", ".join(map(str, files))
    if (whole := _attempt(lambda: results.read(files), remarks, len(files))) is not None:
        yield papers.section(f"{_EVIDENCE}: {names}", whole)
        return
    for file in files:
        yield papers.section(f"{_EVIDENCE}: {file}", results.read([file]))


def _attempt(
    read: Callable[[], results.Results], remarks: list[str], files: int
) -> results.Results | None:
    """Files that do not belong together are shown one by one."""
    try:
        return read()
    except BeowireError as error:
        if files == 1:
            raise
        remarks.append(f"{error.what} Each stands by itself.")
        return None


def _measured(sources: list[Source], remarks: list[str]) -> Iterator[Section]:
    by_writer: dict[str, list[compare_rows.Results]] = {}
    for each in sources:
        if _is_measured(each):
            found = compare_rows.decoded(each.path, each.told)
            by_writer.setdefault(each.writer, []).append(found)
    for first, *more in by_writer.values():
        yield measured.section(first)
        for other in more:
            yield measured.section(other)
            try:
                yield compared.section(compare.compare(first, other))
            except BeowireError as error:
                remarks.append(f"They are not compared: {error.what}")
