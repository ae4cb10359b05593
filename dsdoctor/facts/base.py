"""What every fact section shares: immutability, strict decoding, and a name for "could not find out"."""

from typing import Literal

import msgspec


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every fact. Inside a fact ``None`` means *not known*; an empty tuple means *looked, none there*."""


UnavailableKind = Literal[
    "not-asked",  # the user did not ask for it (no --config, no --smoke): checks of it do not apply
    "not-examined",  # not looked at here (another platform, a static run, a pasted text that does not say)
    "timed-out",  # asked, no answer within the limit
    "crashed",  # the probe itself raised: our bug
    "denied",  # no permission
    "failed",  # asked, and the answer was an error
    "depends",  # needs another fact that is missing
]


class Unavailable(Fact, frozen=True, kw_only=True):
    """Why a fact section is missing. ``detail`` is one sentence for the reader."""

    kind: UnavailableKind
    detail: str
