"""All that a pasted text tells of an environment, as sections of a snapshot: reports, lists, configs, and words of a log.

Where two texts speak of one thing the more exact one counts (told.merge): a program that imported torch before a list of
packages, that before the path of a file; of equally exact ones the last in the text.
"""

import msgspec

from dsdoctor.facts import DeepSpeed, DsReport, Fact, Gpus, Toolkits, Torch
from dsdoctor.readers import (
    accelerate_config,
    beside,
    collect_env,
    config_in_text,
    ds_report,
    framework_env,
    kinds,
    nvidia_smi,
    package_list,
    passing,
    pasted,
)
from dsdoctor.readers.ds_report_rows import INFO_TITLE, KNOWN_KEY, TITLE
from dsdoctor.readers.sections import sections
from dsdoctor.readers.told import Build, Told, base, merge

BEFORE_REPORT = 80  # lines of noise above a ds_report that belong to it
AFTER_REPORT = 40  # lines below its last row: an exception that ended it


def facts_of(text: str, source: str) -> dict[str, Fact]:
    """Sections that the text fills, by their name in a Snapshot. ``source`` names it in facts. Never raises."""
    numbered = pasted.numbered(text)
    lines = [line for _, line in numbered]
    found = kinds.of_lines(lines)
    texts: list[Told] = [*framework_env.read(lines), *package_list.read(lines), *passing.read(lines)]
    if (collected := collect_env.read(lines)) is not None:
        texts.append(collected)
    report, report_facts = None, dict[str, Fact]()
    if "ds_report" in found and (piece := _report_lines(lines)) is not None:
        report = ds_report.parse("\n".join(piece[1]), source)
        if report.ops or report.info or report.fault_type:  # not only its name in a shell's complaint
            report_facts = ds_report.facts_of(report)
            texts.append(_told(report, report_facts.get("torch"), piece[0]))
    facts = _with_report(sections(merge(texts)) if texts else {}, report_facts)
    if "nvidia-smi" in found and (gpus := nvidia_smi.parse(text)) is not None:
        facts["gpus"] = _gpus(gpus, facts.get("gpus"))
    if "nvcc" in found:
        facts |= beside.toolkits_of(text, facts.get("toolkits"))
    if "{" in text and (config := config_in_text.read(numbered, source)) is not None:
        facts["ds_config"] = config
    if "accelerate-config" in found and (asked := accelerate_config.read(numbered, source)) is not None:
        facts["accelerate_config"] = asked
    return facts


def _report_lines(lines: list[str]) -> tuple[int, list[str]] | None:
    """Where the last ds_report begins, and its lines with what surrounds it."""
    rows = [n for n, line in enumerate(lines) if _is_row(line)]
    if not rows:
        return None
    titles = [n for n in rows if TITLE in lines[n]] or rows[:1]
    begin, end = titles[-1], rows[-1] + 1
    while end < len(lines) and lines[end].startswith(" "):  # frames of a traceback
        end += 1
    return begin, lines[max(0, begin - BEFORE_REPORT) : end + AFTER_REPORT]


def _is_row(line: str) -> bool:
    if "report" not in line and ".." not in line and "\u2026" not in line and INFO_TITLE not in line:
        return False
    return TITLE in line or INFO_TITLE in line or bool(KNOWN_KEY.search(line) or kinds.DIED.search(line))


def _told(report: DsReport, torch: Fact | None, line: int) -> Told:
    """A ds_report's word on what other texts tell too."""
    build = None
    if isinstance(torch, Torch):
        build = Build("cuda", torch.cuda) if torch.cuda else Build("hip", torch.hip) if torch.hip else Build("cpu")
    return Told(
        line=line,
        exactness=2,
        torch=report.torch_version,
        build=build,
        torch_path=report.torch_path,
        deepspeed=report.deepspeed_version,
    )


def _with_report(facts: dict[str, Fact], report: dict[str, Fact]) -> dict[str, Fact]:
    """A ds_report knows more of DeepSpeed and of the toolkit that torch picks than other texts."""
    told, own = facts.get("deepspeed"), report.get("deepspeed")
    if isinstance(own, DeepSpeed) and (not isinstance(told, DeepSpeed) or base(told.version) == base(own.version)):
        facts["deepspeed"] = own
    kits, seen = report.get("toolkits"), facts.get("toolkits")
    if isinstance(kits, Toolkits):
        named = isinstance(seen, Toolkits) and seen.chosen_by == "CUDA_HOME"
        if any(kit.version for kit in kits.found) or not named:
            facts["toolkits"] = kits
    if "ds_report" in report:
        facts["ds_report"] = report["ds_report"]
    return facts


def _gpus(own: Gpus, told: Fact | None) -> Gpus:
    """nvidia-smi's own output, with the driver that another text names when it does not."""
    if not isinstance(told, Gpus):
        return own
    if not own.devices and own.nvml == "ok":
        return told
    return msgspec.structs.replace(own, driver_version=own.driver_version or told.driver_version)
