"""From a row of a table (pattern, cause, what to do) to a finding's remedy for this machine."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsdoctor.api import Prescriber, Remedy

Row = Mapping[str, Any]


def first_match(rows: Iterable[Row], *texts: str | None) -> tuple[Row, re.Match[str]] | None:
    """The first row whose ``pattern`` is found in one of the texts, and where."""
    for row in rows:
        for text in texts:
            found = re.search(row["pattern"], text) if text else None
            if found:
                return row, found
    return None


def remedy_of(
    row: Row,
    prescriber: Prescriber,
    verify: str | None = None,
    match: re.Match[str] | None = None,
    groups: Sequence[str] = (),
) -> Remedy:
    """The remedy that a row describes.

    Keys, all optional but ``order``: ``order`` (text), ``set`` (variables and values), ``unset`` (variables), ``uninstall`` and ``pip`` (distributions, with
    ``options``), ``system`` (Debian package names), ``type`` (commands as they stand), ``safety``, ``note``. ``{0}`` in a text
    is the first group of ``match``, or of ``groups``.
    """
    groups = [group or "" for group in match.groups()] if match else groups
    commands = [prescriber.set(name, value) for name, value in row.get("set", {}).items()]
    commands += [prescriber.unset(name) for name in row.get("unset", ())]
    commands += prescriber.system(*row["system"]) if "system" in row else ()
    if "uninstall" in row:
        commands.append(prescriber.pip_uninstall(*(text.format(*groups) for text in row["uninstall"])))
    if "pip" in row:
        wanted = [text.format(*groups) for text in row["pip"]]
        commands.append(prescriber.pip(*wanted, options=row.get("options", "")))
    commands += [prescriber.shell(text.format(*groups)) for text in row.get("type", ())]
    return Remedy(
        order=row["order"].format(*groups),
        commands=tuple(commands),
        safety=row.get("safety", "safe" if commands else "manual"),
        verify=verify,
        note=row["note"].format(*groups) if "note" in row else None,
    )


def run_python(prescriber: Prescriber, code: str) -> str:
    """A command that runs one line in the patient's interpreter."""
    return prescriber.shell(f'{prescriber.python} -c "{code}"')


def last_lines(text: str | None, count: int = 6) -> str:
    """The last lines of a text, for evidence."""
    return "\n".join((text or "").strip().splitlines()[-count:])
