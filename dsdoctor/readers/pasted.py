"""Clean text that was copied from a terminal, an issue or a mail: bounded, without escapes, quotes, prompts and fences."""

from dsdoctor.readers import regex

HEAD_CHARACTERS = 4 * 1024 * 1024
TAIL_CHARACTERS = 1024 * 1024
LINE_CHARACTERS = 4000

# CSI and OSC sequences, other two-character escapes; then what is left of a colour when the ESC byte was lost or shown.
_ESCAPES = regex.compile(
    r"(?:\x1b|\u241b|\^\[)\[[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x1b\][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]{0,8}[0-~]"
    r"|\[(?:0|9[123])?m"
)
# Controls, zero-width and bidirectional marks, lone surrogates. Tab is turned into a blank first.
_CONTROLS = regex.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_QUOTE = regex.compile(r"^(?:\s{0,3}>)+ ?")
_FENCE = regex.compile(r"^\s*(?:```|~~~)[\w+-]*\s*$")
_TRACES = ("[0m", "[9", "^[", "\u241b")  # of an escape, in a line that is printable


def clean(text: str) -> str:
    """``text`` without terminal escapes and control characters (line ends stay)."""
    if text.isprintable() and not any(trace in text for trace in _TRACES):
        return text
    return _CONTROLS.sub("", _ESCAPES.sub("", text).replace("\t", " "))


def lines(text: str) -> list[str]:
    """The lines of a pasted text, cleaned. Only the first 4 Mi and the last 1 Mi characters are looked at."""
    return [line for _, line in numbered(text)]


def numbered(text: str) -> list[tuple[int, str]]:
    """The same lines, each with its number in the text: a carriage return alone ends a line and does not count."""
    if len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS:
        return _kept(text, 1)
    tail = len(text) - TAIL_CHARACTERS
    head = _kept(text[:HEAD_CHARACTERS], 1)
    return head + _kept(text[tail:], text.count("\n", 0, tail) + 1)


def _kept(text: str, first: int) -> list[tuple[int, str]]:
    kept = []
    for number, ended in enumerate(text.split("\n"), first):
        for raw in ended.rstrip("\r").split("\r"):
            line = clean(raw[:LINE_CHARACTERS]).rstrip()
            start = line.lstrip()[:3]
            if start[:1] == ">" and start != ">>>":
                line = _QUOTE.sub("", line)
            elif start in ("```", "~~~") and _FENCE.match(line):
                continue
            kept.append((number, line))
    return kept
