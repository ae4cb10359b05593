"""What a text told of a machine, in one line."""

from dsdoctor.facts import Snapshot


def told(facts: Snapshot) -> str:
    """ "torch 2.1.0+cu121, DeepSpeed 0.12.6, nvcc 11.7, 8 x NVIDIA A100": empty when it told nothing."""
    words = []
    if facts.python is not None:
        words.append(f"Python {facts.python.version}")
    if facts.torch is not None:
        build = f" (CUDA {facts.torch.cuda})" if facts.torch.cuda and "+" not in facts.torch.version else ""
        words.append(f"torch {facts.torch.version}{build}")
    if facts.deepspeed is not None:
        words.append(f"DeepSpeed {facts.deepspeed.version}")
    kit = facts.toolkits.selected if facts.toolkits is not None else None
    if kit is not None and kit.version:
        words.append(f"nvcc {kit.version}")
    if facts.gpus is not None and facts.gpus.devices:
        names = {gpu.name for gpu in facts.gpus.devices}
        words.append(f"{len(facts.gpus.devices)} x {' / '.join(sorted(names))}")
    if facts.gpus is not None and facts.gpus.driver_version:
        words.append(f"driver {facts.gpus.driver_version}")
    return ", ".join(words)
