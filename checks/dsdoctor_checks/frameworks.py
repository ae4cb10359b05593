"""Checks of the frameworks above DeepSpeed: releases of transformers, accelerate and others that do not go with it."""

from collections.abc import Iterator

from dsdoctor.api import DeepSpeed, Finding, Packages, Prescriber, Remedy, Severity, check, not_applicable
from dsdoctor_checks.tables import table
from dsdoctor_checks.versions import before, release

_TABLE = "huggingface"


@check(
    "DS030",
    "DeepSpeed is as new as transformers and accelerate want it",
    causes=["hf-min-deepspeed-version"],
    guards=["trainer", "accelerate"],
)
def wanted_minimum(deepspeed: DeepSpeed, packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """Both test DeepSpeed's version when they start, and stop with an ImportError."""
    rows = {name: row for name, row in table(_TABLE)["minimum"].items() if isinstance(row, dict)}
    there = {name: found for name in rows if (found := packages.version(name)) is not None}
    if not there:
        not_applicable("neither transformers nor accelerate is installed")
    for name, found in there.items():
        wanted = rows[name]["deepspeed"]
        if not before(found, rows[name]["since"]) and before(deepspeed.version, wanted):
            yield Finding(
                message=f"{name} {found} wants DeepSpeed {wanted} or newer; {deepspeed.version} is installed",
                cause="hf-min-deepspeed-version",
                subject=name,
                remedy=Remedy(
                    order="Update DeepSpeed",
                    commands=(prescriber.pip(f"deepspeed>={wanted}", options="--upgrade"),),
                    verify=prescriber.shell(f"{prescriber.python} -m pip show deepspeed"),
                ),
            )


@check(
    "DS031",
    "No framework here refuses a DeepSpeed as new as this one",
    causes=["framework-upper-bound"],
    severity=Severity.WARNING,
)
def upper_bounds(deepspeed: DeepSpeed, packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """Some frameworks test for an upper bound at run time that their documentation does not mention."""
    rows = {name: row for name, row in table(_TABLE)["maximum"].items() if isinstance(row, dict)}
    if not any(packages.version(name) for name in rows):
        not_applicable("no framework with a known upper bound is installed")
    for name, row in rows.items():
        found = packages.version(name)
        if found is not None and before(row["deepspeed"], deepspeed.version):
            yield Finding(
                message=f"{name} {found} was seen to refuse a DeepSpeed after {row['deepspeed']}; {deepspeed.version} is installed",
                cause="framework-upper-bound",
                subject=name,
                remedy=Remedy(
                    order=f"Update {name}; if it still refuses, install the last DeepSpeed that it takes",
                    commands=(
                        prescriber.pip(name, options="--upgrade"),
                        prescriber.pip(f"deepspeed<={row['deepspeed']}"),
                    ),
                    safety="careful",
                    note=f"{row['escape']} leaves the test out, at your own risk",
                ),
            )


@check(
    "DS032",
    "accelerate keeps transformers away from DeepSpeed's optimizer",
    causes=["zero-optimizer-no-attr-train"],
    guards=["trainer"],
)
def optimizer_train_fits(packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """transformers 4.45 calls optimizer.train(). accelerate before 0.34 passes the call on to DeepSpeed, which has none."""
    row = table(_TABLE)["optimizer_train"]
    transformers, accelerate = packages.version("transformers"), packages.version("accelerate")
    if transformers is None or accelerate is None:
        not_applicable("transformers and accelerate are not both installed")
    if not before(transformers, row["transformers"]) and before(accelerate, row["accelerate"]):
        yield Finding(
            message=f"transformers is {transformers} and accelerate {accelerate}: training stops with "
            "'DeepSpeedZeroOptimizer' object has no attribute 'train'",
            cause="zero-optimizer-no-attr-train",
            remedy=Remedy(
                order="Update accelerate",
                commands=(prescriber.pip(f"accelerate>={row['accelerate']}", options="--upgrade"),),
                verify=prescriber.shell(f"{prescriber.python} -m pip show accelerate"),
            ),
        )


@check(
    "DS033",
    "transformers accumulates gradients as this DeepSpeed allows",
    causes=["no-sync-zero23"],
    severity=Severity.WARNING,
)
def no_sync_fits(deepspeed: DeepSpeed, packages: Packages, prescriber: Prescriber) -> Iterator[Finding]:
    """DeepSpeed 0.16 refuses no_sync under ZeRO-2 and 3; transformers before 4.48 calls it when it accumulates gradients."""
    row = table(_TABLE)["no_sync"]
    transformers = packages.version("transformers")
    if transformers is None:
        not_applicable("transformers is not installed")
    if release(deepspeed.version) >= release(row["deepspeed"]) and before(transformers, row["transformers"]):
        yield Finding(
            message=f"DeepSpeed is {deepspeed.version} and transformers {transformers}: gradient accumulation under ZeRO-2 or 3 "
            "stops with an assertion in no_sync",
            cause="no-sync-zero23",
            remedy=Remedy(
                order="Update transformers and accelerate",
                commands=(prescriber.pip(f"transformers>={row['transformers']}", "accelerate", options="--upgrade"),),
                verify=prescriber.shell(f"{prescriber.python} -m pip show transformers"),
            ),
        )
