"""Which signatures the telling lines of one file are, with what must and must not stand near them."""

from collections.abc import Sequence

import msgspec

from dsdoctor.facts import LogMatch, LogPlace
from dsdoctor.readers.log.ends import FRAME
from dsdoctor.readers.log.prefixes import Said
from dsdoctor.readers.log.scan import Line
from dsdoctor.signatures import Signature, Signatures

MOST_OF_A_SIGNATURE = 8  # lines with different values that are kept
_GROUP = 200


class Matches:
    """Collects them; lines that say the same count, and are kept once."""

    def __init__(self, signatures: Signatures) -> None:
        self._signatures = signatures
        self._found: dict[tuple[str, tuple[str, ...]], LogMatch] = {}
        self._variants: dict[str, int] = {}
        # for the end of the text, with the harmless readings that it then suppresses
        self._waiting: list[tuple[Signature, LogMatch, list[LogMatch]]] = []

    def look(self, line: Line, said: Said, place: LogPlace) -> None:
        """Match one line; any other reading of it suppresses the harmless ones. Source that a traceback shows says nothing."""
        if _is_source(line, said):
            return
        here = []
        for number in line.rows:
            anchor = self._signatures.anchor(number)
            signature = self._signatures.at(number) if anchor in said.line else None
            if signature is not None and (match := _match(signature, line, said, place)):
                here.append((signature, match))
        quiet = [match for signature, match in here if signature.role == "harmless"]
        bad = any(signature.role != "harmless" and signature.last is None for signature, _ in here)
        for signature, match in here:
            if signature.role == "harmless" and bad:
                continue
            if signature.last is None:
                self._keep(match)
            else:
                self._waiting = [(s, m, q) for s, m, q in self._waiting if s.id != signature.id]
                self._waiting.append((signature, match, [] if signature.role == "harmless" else quiet))

    def end(self, last: Sequence[tuple[int, bytes]]) -> None:
        """The text has ended; ``last`` are its last lines that are not blank."""
        for signature, match, quiet in self._waiting:
            if sum(number > match.place.line for number, _ in last) <= (signature.last or 0):
                self._keep(match)
                for harmless in quiet:
                    self._found.pop((harmless.signature, harmless.groups), None)

    def found(self) -> list[LogMatch]:
        """In the order of the text."""
        return sorted(self._found.values(), key=lambda match: match.place.line)

    def _keep(self, match: LogMatch) -> None:
        key = (match.signature, match.groups)
        known = self._found.get(key)
        if known is not None:
            rank = match.place.rank
            ranks = known.ranks if rank is None or rank in known.ranks else (*known.ranks, rank)
            self._found[key] = msgspec.structs.replace(known, count=known.count + 1, ranks=ranks)
        elif self._variants.get(match.signature, 0) < MOST_OF_A_SIGNATURE:
            self._variants[match.signature] = self._variants.get(match.signature, 0) + 1
            self._found[key] = match


def _is_source(line: Line, said: Said) -> bool:
    """Tracebacks show the line that raised, with the words of its message: they were not said. What is imported, was."""
    words = said.words
    if not words.startswith("    ") or words.lstrip().startswith(("import ", "from ")):
        return False
    return any(FRAME.match(before) and _indent(words) > _indent(before) for before in line.around.before(1))


def _indent(words: str) -> int:
    return len(words) - len(words.lstrip())


def _match(signature: Signature, line: Line, said: Said, place: LogPlace) -> LogMatch | None:
    found = signature.regex.search(said.words) or signature.regex.search(said.line)
    if found is None or not _fits(signature, line):
        return None
    groups = tuple((group or "").strip()[:_GROUP] for group in found.groups())
    return LogMatch(
        signature=signature.id,
        role=signature.role,
        place=place,
        cause=signature.cause,
        hides=signature.hides,
        weight=signature.weight,
        reason=filled(signature.reason, groups),
        groups=groups,
        remedy=signature.remedy,
        ranks=() if place.rank is None else (place.rank,),
    )


def _fits(signature: Signature, line: Line) -> bool:
    """What has to stand near stands there, and what must not does not."""
    if not signature.near and not signature.not_near:
        return True
    missing = list(signature.near_regexes)
    for neighbour in line.around.lines(signature.within):
        if any(pattern.search(neighbour) for pattern in signature.not_near_regexes):
            return False
        missing = [pattern for pattern in missing if not pattern.search(neighbour)]
        if not missing and not signature.not_near:
            return True
    return not missing


def filled(text: str, groups: Sequence[str]) -> str:
    """``text`` with {0}, {1}... replaced. A text that is no format, or wants more groups, stays as it is."""
    try:
        return text.format(*groups)
    except (IndexError, KeyError, ValueError):
        return text
