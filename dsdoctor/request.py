"""What the user asked for, as one value that every stage can read."""

import msgspec

from dsdoctor.settings import Settings


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for."""

    python: str | None = None
    static: bool = False
    smoke: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    config: str | None = None
    nvme: str | None = None
    purpose: str | None = None  # None: guess
    snapshot: str | None = None
    ds_report: str | None = None  # a file, or "-" for standard input
    hostfile: str | None = None
    limit_s: float = 60.0  # for the live probe
    smoke_limit_s: float = 600.0
    settings: Settings = Settings()
