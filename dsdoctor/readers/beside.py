"""What people paste beside a ds_report: the outputs of nvidia-smi and nvcc, known by their content."""

import msgspec

from dsdoctor.facts import Fact, Toolkits
from dsdoctor.readers import nvcc, nvidia_smi


def facts_of(text: str, toolkits: Fact | None) -> dict[str, Fact]:
    """Sections that the text fills beside its ds_report, whose ``toolkits`` count when they know a release. Never raises.

    nvcc as the user's shell finds it may be another one than ds_report's, which is the one of CUDA_HOME.
    """
    facts: dict[str, Fact] = {}
    if (gpus := nvidia_smi.parse(text)) is not None:
        facts["gpus"] = gpus
    kit = nvcc.parse(text)
    if kit is None or kit.nvcc is None:
        return facts
    if not isinstance(toolkits, Toolkits):
        facts["toolkits"] = Toolkits(found=(kit,), chosen=kit.root, chosen_by="nvcc on PATH", nvcc_on_path=kit.nvcc)
    elif kit.root != nvcc.UNKNOWN_ROOT and not any(found.version for found in toolkits.found):
        facts["toolkits"] = msgspec.structs.replace(toolkits, found=(*toolkits.found, kit), nvcc_on_path=kit.nvcc)
    return facts
