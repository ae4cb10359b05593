"""Read a ds_config.json as DeepSpeed does (Hjson: comments, loose keys and commas), with the place of every key.

DeepSpeed opens a path with ``hjson.load``; the rules here follow hjson-py 3.1 (decoder.py), checked against it in tests.
"""

import json
import os
import re
from bisect import bisect_right
from typing import Any

from dsdoctor.facts import DsConfig

MOST_BYTES = 4 * 1024 * 1024
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
_ESCAPES = {
    '"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_YAML_BLOCK = re.compile(r"^[A-Za-z_][\w-]*:[ \t]*\r?\n[ \t]+[A-Za-z_-]", re.MULTILINE)


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
                    raise Stop(f"the brace that opens at line {self.place(opened)[0]} is never closed", at)
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
                raise Stop(f"a colon is missing after the key {_short(key)}", at)
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
                raise Stop(f"the bracket that opens at line {self.place(opened)[0]} is never closed", at)
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
            raise Stop(f"a key is expected here, not {_short(self.text[at : at + 1])}", at)
        after = re.compile(r"\s*").match(self.text, found.end())
        if after is not None and self.text[after.end() : after.end() + 1] != ":":
            raise Stop(f"a colon is missing after the key {_short(found.group())}", found.end())
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
                raise Stop(f"\\{_short(sign, '')} is no escape sequence (write \\\\ for a backslash)", at - 1)
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
        return _SURROGATE.sub("\ufffd", line.group().strip()), line.end()

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


def parse(text: str, path: str) -> DsConfig:
    """The config in ``text``; what is wrong with it is told in ``problem``. Never raises."""
    text = text.removeprefix("\ufeff")
    if len(text) > MOST_BYTES:
        return _unusable(
            path, f"it has {len(text):,} characters; a DeepSpeed config has a few thousand", readable=False
        )
    if not text.strip():
        return _unusable(path, "it is empty")
    if _is_yaml(text, path):
        return _unusable(
            path, "it looks like YAML; DeepSpeed reads JSON (an Accelerate file can name it as deepspeed_config_file)"
        )
    scanner = Scanner(text)
    try:
        values = scanner.root()
    except Stop as stop:
        line, column = scanner.place(min(stop.offset, len(text)))
        return DsConfig(path=path, problem=str(stop), line=line, column=column, places=scanner.places)
    if not isinstance(values, dict):
        return _unusable(path, f"it holds {_kind(values)}, not an object {{...}}")
    return DsConfig(
        path=path,
        values=values,
        places=scanner.places,
        duplicates=tuple(scanner.duplicates),
        strict_json=_is_strict(text),
    )


def read(path: str) -> DsConfig:
    """The config in the file ``path``; a file that cannot be read gives ``readable`` False and a sentence."""
    try:
        if os.path.isdir(path):
            return _unusable(path, "it is a folder; name the JSON file in it", readable=False)
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return _unusable(path, "there is no such file", readable=False)
    except (OSError, ValueError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        return _unusable(path, f"it cannot be read: {reason}", readable=False)
    if len(data) > MOST_BYTES:
        limit = MOST_BYTES // 2**20
        return _unusable(path, f"it is larger than {limit} MiB; a DeepSpeed config has a few kilobytes", readable=False)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _unusable(path, "it is UTF-16; save it as UTF-8")
    try:
        return parse(data.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        return DsConfig(path=path, problem="it is not UTF-8 text", line=line, column=column)


def _unusable(path: str, problem: str, *, readable: bool = True) -> DsConfig:
    return DsConfig(path=path, readable=readable, problem=problem)


def _is_yaml(text: str, path: str) -> bool:
    first = text.lstrip()[:3]
    if first[:1] in ("{", "["):
        return False
    return first == "---" or path.lower().endswith((".yaml", ".yml")) or _YAML_BLOCK.search(text) is not None


def _is_strict(text: str) -> bool:
    """True when plain JSON readers (transformers, accelerate) take it too."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}.get(type(value), "a number")


def _short(text: str, quote: str = '"') -> str:
    """For a sentence: printable and not long."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:60])
    return f"{quote}{shown}{'...' if len(text) > 60 else ''}{quote}" if text else "the end of the file"
