# SPDX-License-Identifier: LGPL-3.0-or-later
"""A finding, and how findings are shown."""
import dataclasses
import textwrap

ERROR, WARNING, NOTE = "error", "warning", "note"
RANKS = (ERROR, WARNING, NOTE)

# Exit status of the program; the man page has the same list.
NOTHING, WARNINGS, ERRORS, NOT_CHECKED = range(4)

WIDTH = 78


@dataclasses.dataclass(frozen=True)
class Place:
    """Where something is written; an empty one: nowhere."""
    file: str = ""
    line: int = 0
    block: str = ""
    key: str = ""

    def __str__(self):
        where = f"{self.file}:{self.line}" if self.line else self.file
        return " ".join(word for word in (where, self.block, self.key) if word)


@dataclasses.dataclass(frozen=True)
class Finding:
    """What is wrong, and what to do about it.

    CODE is for scripts and stays the same; WHAT and WAY_OUT are for people.
    """
    severity: str
    code: str
    place: Place
    what: str
    way_out: str = ""
    command: str = ""       # to copy: never wrapped


def in_order(findings):
    """Each once; errors first, then as they stand in the file."""
    unique = dict.fromkeys(findings)
    return sorted(unique, key=lambda found: (RANKS.index(found.severity),
                                             found.place.file,
                                             found.place.line))


def status(findings):
    """The exit status that tells scripts the worst of them."""
    found = {finding.severity for finding in findings}
    if ERROR in found:
        return ERRORS
    return WARNINGS if WARNING in found else NOTHING


def _wrapped(label, text):
    return textwrap.fill(text, WIDTH, initial_indent=f"  {label:<8}",
                         subsequent_indent=" " * 10, break_long_words=False,
                         break_on_hyphens=False)


def table(findings):
    """Each finding as some lines, and a line with their number."""
    lines = []
    for found in findings:
        lines.append(f"{found.severity.upper():<8}  "
                     f"{str(found.place) or '-'}  [{found.code}]")
        lines.append(_wrapped("what", found.what))
        if found.way_out:
            lines.append(_wrapped("way out", found.way_out))
        if found.command:
            lines.append(f"          {found.command}")
        lines.append("")
    counts = [sum(found.severity == rank for found in findings)
              for rank in RANKS]
    lines.append(", ".join(f"{count} {rank}{'s' * (count != 1)}"
                           for count, rank in zip(counts, RANKS)))
    return "\n".join(lines)


def as_objects(findings):
    """For JSON."""
    return [dataclasses.asdict(found) for found in findings]
