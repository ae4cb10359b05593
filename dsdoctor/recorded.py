"""A machine that somebody recorded: a snapshot file, a report that carries one, a pasted ds_report."""

import sys
from pathlib import Path

from dsdoctor import __version__
from dsdoctor.facts import DsConfig, Fact, Snapshot, SnapshotError, Unavailable
from dsdoctor.facts.snapshot import SECTIONS, decode, now
from dsdoctor.readers.opened import content
from dsdoctor.request import ExaminationError, Request

SNAPSHOT_LIMIT = 64 * 1024 * 1024


def read_snapshot(name: str) -> Snapshot:
    """A snapshot file, or a ``--json`` report that carries one. Raises ExaminationError."""
    try:
        path = Path(name)
        if path.is_dir():
            path = path / "facts.json"
            if not path.exists():
                raise ExaminationError(f"{name} holds no facts.json: it is no recorded machine")
        if path.stat().st_size > SNAPSHOT_LIMIT:
            raise ExaminationError(f"{name} is larger than any snapshot ({path.stat().st_size} bytes)")
        snapshot = decode(content(str(path), SNAPSHOT_LIMIT), name)
    except OSError as error:
        raise ExaminationError(f"{name} cannot be read: {error.strerror or error}") from None
    except SnapshotError as error:
        raise ExaminationError(str(error)) from None
    return snapshot.replace(origin=name)


def read_ds_report(name: str) -> Snapshot:
    from dsdoctor.readers import beside, ds_report

    try:
        if name == "-":
            data = sys.stdin.buffer.read(SNAPSHOT_LIMIT + 1)
        else:
            with open(name, "rb") as file:
                data = file.read(SNAPSHOT_LIMIT + 1)
    except OSError as error:
        raise ExaminationError(f"{name} cannot be read: {error.strerror or error}") from None
    if len(data) > SNAPSHOT_LIMIT:
        raise ExaminationError(f"{name} is larger than any ds_report (over {SNAPSHOT_LIMIT // 2**20} MiB)")
    text = data.decode("utf-8", "replace")
    report = ds_report.parse(text, "standard input" if name == "-" else name)
    sections = ds_report.facts_of(report)
    sections |= beside.facts_of(text, sections.get("toolkits"))
    silent = Unavailable(kind="not-examined", detail="a pasted ds_report does not say")
    unavailable = {s: silent for s in SECTIONS.values() if s not in sections and s != "log"} | not_asked(
        smoke=True, config=True
    )
    return Snapshot(tool_version=__version__, origin=report.source, taken_at=now(), unavailable=unavailable).replace(
        ds_report=report, **{k: v for k, v in sections.items() if k != "ds_report"}
    )


def not_asked(*, smoke: bool, config: bool) -> dict[str, Unavailable]:
    """Sections that the user did not ask for."""
    reasons = {
        "smoke": (smoke, "no smoke run was asked for (--smoke)"),
        "ds_config": (config, "no ds_config was given (--config)"),
    }
    return {name: Unavailable(kind="not-asked", detail=detail) for name, (absent, detail) in reasons.items() if absent}


def beside_the_config(request: Request) -> dict[str, Fact]:
    """What the request tells beside the ds_config: files of frameworks, and how the run will be started."""
    found: dict[str, Fact] = {"run_plan": request.run_plan} if request.run_plan else {}
    if request.model:
        from dsdoctor.readers import model_words

        found["model_config"] = model_words.read(request.model)
    if request.accelerate_config or request.training_args:
        from dsdoctor.readers.framework_files import read_accelerate, read_training_args

        if request.accelerate_config:
            found["accelerate_config"] = read_accelerate(request.accelerate_config)
        if request.training_args:
            found["training_args"] = read_training_args(request.training_args)
    return found


def with_config(snapshot: Snapshot, request: Request, config: DsConfig | None = None) -> Snapshot:
    """The snapshot with what the request gives beside the machine; ``config``: what ``request.config`` holds, when it was read."""
    snapshot = snapshot.replace(**beside_the_config(request))
    if not request.config:
        return snapshot
    from dsdoctor.readers import ds_config

    kept = {k: v for k, v in snapshot.unavailable.items() if k != "ds_config"}
    return snapshot.replace(ds_config=config or ds_config.read(request.config), unavailable=kept)
