"""What people paste beside a ds_report: the outputs of nvidia-smi and nvcc, known by their content."""

import msgspec

from dsdoctor.facts import Fact, Toolkits
from dsdoctor.readers import nvcc, nvidia_smi


def facts_of(text: str, toolkits: Fact | None) -> dict[str, Fact]:
    """Sections that the text fills beside its ds_report. Never raises."""
    gpus = nvidia_smi.parse(text)
    return ({} if gpus is None else {"gpus": gpus}) | toolkits_of(text, toolkits)


def toolkits_of(text: str, toolkits: Fact | None) -> dict[str, Fact]:
    """nvcc's own answer as the section "toolkits", unless ``toolkits``, which another text tells, counts.

    nvcc as the user's shell finds it may be another one than torch's (that of CUDA_HOME), which counts where it is told.
    """
    kit = nvcc.parse(text)
    if kit is None or kit.nvcc is None:
        return {}
    if not isinstance(toolkits, Toolkits) or toolkits.chosen_by == "nvcc on PATH":
        return {"toolkits": Toolkits(found=(kit,), chosen=kit.root, chosen_by="nvcc on PATH", nvcc_on_path=kit.nvcc)}
    if kit.root != nvcc.UNKNOWN_ROOT and not any(found.version for found in toolkits.found):
        return {"toolkits": msgspec.structs.replace(toolkits, found=(*toolkits.found, kit), nvcc_on_path=kit.nvcc)}
    return {}
