"""What the user asked for, as one value that every stage can read; and the error when it cannot be had."""

from typing import TYPE_CHECKING

import msgspec

from dsdoctor.facts import RunPlan
from dsdoctor.settings import Settings

if TYPE_CHECKING:
    from dsdoctor.smoke.order import SmokeOrder


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for."""

    python: str | None = None
    static: bool = False
    smoke: "SmokeOrder | None" = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    config: str | None = None
    accelerate_config: str | None = None  # a YAML file
    training_args: str | None = None  # a JSON or YAML file
    model: str | None = None  # a config.json, or the folder that holds it
    run_plan: RunPlan | None = None
    nvme: str | None = None
    purpose: str | None = None  # None: guess
    snapshot: str | None = None
    ds_report: str | None = None  # a file, or "-" for standard input
    logs: tuple[str, ...] = ()  # files of a run that died, "-" for standard input
    live: bool = False  # with logs: also examine this machine
    hostfile: str | None = None
    limit_s: float = 60.0  # for the live probe
    settings: Settings = Settings()


class ExaminationError(Exception):
    """Nothing can be examined; the message is one sentence. ``exit_code`` is 2 for the user's mistake, 3 for ours."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code
