"""Take out of a snapshot or a report what names a person, a machine or a secret, before it leaves the machine. Pure.

What stays: loopback addresses, versions (also those that look like addresses), sizes, and the structure of paths.
"""

import re
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Literal

import msgspec

from dsdoctor.facts import Programs, Snapshot
from dsdoctor.model import Report
from dsdoctor.redact_text import SECRET, Words, address_class, command, is_secret_name, text, tokens

_HOSTS = re.compile(r"NODELIST|NODENAME|HOSTNAME|SUBMIT_HOST|MASTER_ADDR|_HOST$|^HOST$|NODE_IPADDR")
_USERS = re.compile(r"(?:^|_)(?:USER|USERNAME|LOGNAME|ACCOUNT)$")
_VERSIONS = re.compile(
    r"version|release|kernel$|duplicates|^(?:cuda|nccl|cudnn|hip|libc|glibcxx|driver_cuda)$|^(?:torch|wheel|built)_"
)
_HARMLESS_HOSTS = re.compile(
    r"(?:localhost|127\.\d+\.\d+\.\d+|::1|0\.0\.0\.0|none|node\d+|host|private-ip|public-ip|link-local-ip)?"
)
_BAD_LINE_HOST = re.compile(r"^(\d+: *)([^\s=]+)")


def redact(snapshot: Snapshot, home: str | None, user: str | None, hostname: str | None) -> Snapshot:
    """``snapshot`` without names and secrets; applying it twice changes nothing more.

    ``home``, ``user`` and ``hostname`` are those of the machine that takes the snapshot, None when not known. Home paths
    become ~, user names in paths become "user", this host "host", hosts of the hostfile node1, node2, ...
    """
    return _names(snapshot, home, user, hostname).value(snapshot, "")  # type: ignore[no-any-return]


def redact_report(report: Report, home: str | None, user: str | None, hostname: str | None) -> Report:
    """``report`` by the same rules: its facts as ``redact`` leaves them, and no name in any sentence or command of it."""
    return _names(report.facts, home, user, hostname).value(report, "")  # type: ignore[no-any-return]


def hide_tokens(report: Report) -> Report:
    """``report`` with true names and paths, without tokens and passwords ."""
    return _Tokens().value(report, "")  # type: ignore[no-any-return]


def _names(snapshot: Snapshot, home: str | None, user: str | None, hostname: str | None) -> "_Names":
    nodes = _nodes(snapshot.programs)
    extra = [hostname, snapshot.network.master_addr if snapshot.network else None]
    if snapshot.environment:
        variables = snapshot.environment.variables
        extra += [value for name, value in variables.items() if _HOSTS.search(name) and re.fullmatch(r"[\w.-]+", value)]
    extra = [n for n in extra if n and not _HARMLESS_HOSTS.fullmatch(n) and not address_class(n)]
    known = {name: "host" for full in extra if full for name in (full, full.partition(".")[0])}
    versions = _Versions()
    versions.value(snapshot, "")
    packages = frozenset(snapshot.packages.distributions if snapshot.packages else ())
    words = Words(home=home, user=user, hosts={**known, **nodes}, versions=frozenset(versions.seen), spoken=packages)
    return _Names(words, nodes)


def _nodes(programs: Programs | None) -> dict[str, str]:
    """host -> node1, node2, ... in the order of the hostfile."""
    hostfile = programs.hostfile if programs else None
    if hostfile is None:
        return {}
    bad = [m.group(2) for line in hostfile.bad_lines if (m := _BAD_LINE_HOST.match(line))]
    names = dict.fromkeys(n for n in (*hostfile.hosts, *bad) if n.lower() not in ("localhost", "127.0.0.1", "::1"))
    return {name: f"node{number}" for number, name in enumerate(names, start=1)}


class _Walk:
    """Rebuilds a value with every text in it replaced; the name of its field decides what a text may be."""

    def value(self, value: Any, field: str) -> Any:
        if isinstance(value, str):
            return value if isinstance(value, Enum) else self.string(value, field)
        if isinstance(value, msgspec.Struct):
            kept = _literals(type(value))
            fields = {n: getattr(value, n) for n in value.__struct_fields__ if n not in kept}
            return msgspec.structs.replace(value, **{n: self.value(v, n) for n, v in fields.items()})
        if isinstance(value, dict):
            return {self.key(k, field): self.value(v, self.inner(k, field)) for k, v in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(self.value(item, field) for item in value)
        return value

    def key(self, key: Any, field: str) -> Any:
        return key

    def inner(self, key: Any, field: str) -> str:
        """The field name of a dict's value: variables, config keys and report rows count by their own name."""
        root = field.partition(".")[0]
        return f"{root}.{key}" if root in ("variables", "values", "info") else field

    def string(self, value: str, field: str) -> str:
        return value


class _Tokens(_Walk):
    """Takes out tokens and passwords."""

    def string(self, value: str, field: str) -> str:
        root, _, name = field.partition(".")
        if root in ("variables", "values") and is_secret_name(name):
            return SECRET if value not in ("", "auto") else value
        return tokens(value)


class _Versions(_Walk):
    """Changes nothing; notes the versions that look like addresses."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def string(self, value: str, field: str) -> str:
        if _is_version(field) and address_class(value):
            self.seen.add(value)
        return value


class _Names(_Tokens):
    """Takes out everything private."""

    def __init__(self, words: Words, nodes: Mapping[str, str]) -> None:
        self.words, self.nodes = words, nodes

    def key(self, key: Any, field: str) -> Any:
        return self.nodes.get(key, key) if field == "hosts" else key

    def string(self, value: str, field: str) -> str:
        value = super().string(value, field)
        root, _, name = field.partition(".")
        if root == "variables":
            return self.variable(name, value)
        if root == "master_addr":
            return self.host(value)
        if root == "bad_lines":
            return self.bad_line(value)
        if root in ("commands", "verify"):
            return command(value, self.words)
        return text(value, self.words, addresses=not _is_version(field))

    def variable(self, name: str, value: str) -> str:
        """The value of an environment variable."""
        if _USERS.search(name) and value:
            return "user" if value != "root" else value
        return self.host(value) if _HOSTS.search(name) else text(value, self.words)

    def host(self, value: str) -> str:
        """What stands for a host name or address, whatever it looks like."""
        if value in self.nodes:
            return self.nodes[value]
        return value if _HARMLESS_HOSTS.fullmatch(value) else address_class(value) or "host"

    def bad_line(self, line: str) -> str:
        swap: Callable[[re.Match[str]], str] = lambda m: m.group(1) + self.nodes.get(m.group(2), m.group(2))  # noqa: E731
        return text(_BAD_LINE_HOST.sub(swap, line), self.words)


def _is_version(field: str) -> bool:
    return _VERSIONS.search(field.rpartition(".")[2]) is not None


@cache
def _literals(kind: type[msgspec.Struct]) -> frozenset[str]:
    """Fields of one struct whose type allows only fixed words; they name nobody."""
    fixed = set()
    for field in msgspec.structs.fields(kind):
        parts = typing.get_args(field.type) if isinstance(field.type, types.UnionType) else (field.type,)
        if typing.get_origin(field.type) is typing.Union:
            parts = typing.get_args(field.type)
        if all(typing.get_origin(part) is Literal or part is type(None) for part in parts):
            fixed.add(field.name)
    return frozenset(fixed)
