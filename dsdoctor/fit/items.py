"""An account of memory: items in bytes, each with its reason, at the moment when they are most together."""

from collections.abc import Mapping
from typing import Literal

import msgspec

Kind = Literal["parameters", "gradients", "master", "optimizer", "buffers", "activations", "loss", "runtime", "model"]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    kind: Kind
    name: str
    bytes: int
    exact: bool
    why: str  # one short sentence


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of memory at its worst moment, and how much the other moments take."""

    moment: str
    items: tuple[Item, ...]
    moments: dict[str, int]  # every moment that was looked at → bytes

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.items)

    @property
    def exact_bytes(self) -> int:
        return sum(item.bytes for item in self.items if item.exact)

    def of(self, *kinds: Kind) -> int:
        return sum(item.bytes for item in self.items if item.kind in kinds)


def worst(moments: Mapping[str, list[Item]]) -> Account:
    """The account of the moment that needs most; items of no bytes are left out."""
    sums = {moment: sum(item.bytes for item in items) for moment, items in moments.items()}
    moment = max(sums, key=lambda name: sums[name])
    return Account(moment=moment, items=tuple(i for i in moments[moment] if i.bytes), moments=sums)


def item(kind: Kind, name: str, count: float, why: str, *, exact: bool = True) -> Item:
    return Item(kind=kind, name=name, bytes=max(0, int(count)), exact=exact, why=why)
