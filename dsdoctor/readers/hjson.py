"""Hjson as DeepSpeed's reader takes it (comments, loose keys and commas), with the place of every key.

The rules follow hjson-py 3.1 (decoder.py), checked against it in tests.
"""

import re
from bisect import bisect_right
from typing import Any

LONGEST_PATH = 2000  # characters of a dotted key whose place is kept
DEEPEST = 100  # levels of nesting; a real config has about six

_SPACE = re.compile(r"(?:[ \t\n\r]+|(?:#|//)[^\n\r]*|/\*.*?\*/)+", re.DOTALL)
_NAME = re.compile(r"[^:{}\[\],\s]+")
_PLAIN = re.compile(r"[^\"'\\\x00-\x1f]+")
_END = r"[ \t]*(?=[,}\]#\r\n]|//|/\*|\Z)"
_WORD = re.compile(r"(true|false|null)" + _END)
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?" + _END)
_LINE = re.compile(r"[^\r\n]*")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_MEANT = {
    "true": "write true", "false": "write false", "none": "write null",
    "nan": "DeepSpeed reads no NaN", "inf": "DeepSpeed reads no Infinity", "infinity": "DeepSpeed reads no Infinity",
}  # fmt: skip
_ESCAPES = {
    '"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip


class Stop(Exception):
    """The text breaks the grammar at ``offset``."""

    def __init__(self, sentence: str, offset: int) -> None:
        super().__init__(sentence)
        self.offset = offset


class Scanner:
    """One pass over the text, recursive by at most DEEPEST levels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self.places: dict[str, tuple[int, int]] = {}
        self.duplicates: dict[str, None] = {}
        self.swallowed: tuple[int, str] | None = (
            None  # the first text without quotes that took a closing bracket with it
        )

    def blame(self, stop: Stop) -> Stop:
        """What to tell instead of ``stop``: a text without quotes that took the bracket which is missed afterwards."""
        if self.swallowed is None:
            return stop
        at, text = self.swallowed
        word = re.split(r"[\s,}\]]", text, maxsplit=1)[0]
        meant = _MEANT.get(word.lstrip("+-").lower(), "put texts in double quotes")
        return Stop(f"{short(word)} has no quotes, so the rest of its line belongs to it as text; {meant}", at)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, 1-based."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def root(self) -> Any:
        at = self.skip(0)
        if self.text[at : at + 1] in ("{", "["):
            value, at = self.value(at, "", 0)
            at = self.skip(at)
            if at < len(self.text):
                raise Stop("something follows the closing bracket", at)
            return value
        try:
            return self.members(at, "", 0, braces=False)[0]
        except Stop:
            if not _NAME.match(self.text, at) and self.text[at : at + 1] not in ('"', "'"):
                raise
            if re.match(r"[^\n]*:", self.text[at:]):
                raise
            return self.value(at, "", 0)[0]

    def skip(self, at: int) -> int:
        """Past blanks and comments."""
        found = _SPACE.match(self.text, at)
        at = found.end() if found else at
        if self.text.startswith("/*", at):
            raise Stop("the comment that begins here is never closed", at)
        return at

    def value(self, at: int, path: str, depth: int) -> tuple[Any, int]:
        start = self.text[at : at + 1]
        if depth > DEEPEST:
            raise Stop(f"the nesting is deeper than {DEEPEST} levels", at)
        if start == "{":
            return self.members(at + 1, path, depth, braces=True)
        if start == "[":
            return self.elements(at + 1, path, depth)
        if self.text.startswith("'''", at):
            return self.multiline(at)
        if start in ('"', "'") and start:
            return self.quoted(at)
        return self.quoteless(at)

    def members(self, at: int, path: str, depth: int, *, braces: bool) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        opened = at - 1
        at = self.skip(at)
        while True:
            if braces and self.text[at : at + 1] == "}":
                return values, at + 1
            if at >= len(self.text):
                if braces:
                    raise Stop("the brace that opens here is never closed", opened)
                return values, at
            place = self.place(at)
            key, at = self.key(at)
            dotted = f"{path}.{key}" if path else key
            if key in values:
                self.duplicates[dotted] = None
            if len(dotted) < LONGEST_PATH:
                self.places[dotted] = place
            at = self.skip(at)
            if self.text[at : at + 1] != ":":
                raise Stop(f"a colon is missing after the key {short(key)}", at)
            values[key], at = self.value(self.skip(at + 1), dotted, depth + 1)
            at = self.comma(at)

    def elements(self, at: int, path: str, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        opened = at - 1
        at = self.skip(at)
        while True:
            if self.text[at : at + 1] == "]":
                return values, at + 1
            if at >= len(self.text):
                raise Stop("the bracket that opens here is never closed", opened)
            value, at = self.value(at, f"{path}.{len(values)}", depth + 1)
            values.append(value)
            at = self.comma(at)

    def comma(self, at: int) -> int:
        at = self.skip(at)
        return self.skip(at + 1) if self.text[at : at + 1] == "," else at

    def key(self, at: int) -> tuple[str, int]:
        if self.text[at : at + 1] in ('"', "'"):
            return self.quoted(at)
        found = _NAME.match(self.text, at)
        if found is None:
            raise Stop(f"a key is expected here, not {short(self.text[at : at + 1])}", at)
        after = re.compile(r"\s*").match(self.text, found.end())
        if after is not None and self.text[after.end() : after.end() + 1] != ":":
            raise Stop(f"a colon is missing after the key {short(found.group())}", found.end())
        return _SURROGATE.sub("\ufffd", found.group()), found.end()

    def quoted(self, at: int) -> tuple[str, int]:
        """A string in double or single quotes, with JSON's escapes."""
        begin, mark, parts = at, self.text[at], []
        at += 1
        while True:
            if plain := _PLAIN.match(self.text, at):
                parts.append(plain.group())
                at = plain.end()
            sign = self.text[at : at + 1]
            if sign == mark:
                return _SURROGATE.sub("\ufffd", "".join(parts)), at + 1
            if sign == "\\":
                part, at = self.escape(at + 1)
            elif sign in ('"', "'") and sign:
                part, at = sign, at + 1
            elif sign in ("", "\n", "\r"):
                raise Stop("the quote that opens here is not closed on its line", begin)
            else:
                raise Stop("a control character stands in a string", at)
            parts.append(part)

    def escape(self, at: int) -> tuple[str, int]:
        sign = self.text[at : at + 1]
        if sign != "u":
            if sign not in _ESCAPES:
                raise Stop(f"\\{short(sign, '')} is no escape sequence (write \\\\ for a backslash)", at - 1)
            return _ESCAPES[sign], at + 1
        if not _HEX.match(self.text, at + 1):
            raise Stop("\\u needs four hexadecimal digits", at - 1)
        code, at = int(self.text[at + 1 : at + 5], 16), at + 5
        if code & 0xFC00 == 0xD800 and self.text.startswith("\\u", at) and _HEX.match(self.text, at + 2):
            low = int(self.text[at + 2 : at + 6], 16)
            if low & 0xFC00 == 0xDC00:
                return chr(0x10000 + ((code - 0xD800) << 10 | low - 0xDC00)), at + 6
        return chr(code), at

    def multiline(self, at: int) -> tuple[str, int]:
        """Hjson's '''text'''; its lines lose the indentation of the opening quotes."""
        indent = self.place(at)[1] - 1
        end = self.text.find("'''", at + 3)
        if end < 0:
            raise Stop("the ''' that opens here is never closed", at)
        body = re.sub(r"^[ \t\r]*\n?", "", self.text[at + 3 : end].replace("\r\n", "\n"), count=1)
        body = re.sub(rf"^[ \t]{{0,{min(indent, 1000)}}}", "", body, flags=re.MULTILINE)
        return _SURROGATE.sub("\ufffd", body.removesuffix("\n")), end + 3

    def quoteless(self, at: int) -> tuple[Any, int]:
        """true, false, null, a number, or a string that runs to the end of its line."""
        if word := _WORD.match(self.text, at):
            return _WORDS[word.group(1)], word.end()
        if number := _NUMBER.match(self.text, at):
            return self.number(number), number.end()
        start = self.text[at : at + 1]
        if start == "" or start in "{}[],:":
            raise Stop("a value is missing" if start else "a value is missing at the end of the file", at)
        line = _LINE.match(self.text, at)
        assert line is not None
        text = line.group().strip()
        if self.swallowed is None and any(text.count(shut) > text.count(open_) for open_, shut in ("{}", "[]")):
            self.swallowed = at, text
        return _SURROGATE.sub("\ufffd", text), line.end()

    def number(self, found: "re.Match[str]") -> int | float:
        whole, fraction, exponent = found.groups()
        if len(found.group()) > 400:
            raise Stop("the number is too long", found.start())
        if not (fraction or exponent):
            return int(whole)
        value = float(whole + (fraction or "") + (exponent or ""))
        if value in (float("inf"), float("-inf")):
            raise Stop("the number is too large", found.start())
        return int(value) if value.is_integer() and abs(value) < 1e10 else value


def short(text: str, quote: str = '"') -> str:
    """For a sentence: printable and not long."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:60])
    return f"{quote}{shown}{'...' if len(text) > 60 else ''}{quote}" if text else "the end of the file"
