"""NVMe offload in the config: asynchronous I/O, buffers and the second path. Of the family CFG (see config.py).

The first path is judged by the family NVME. Source of the rules: deepspeed 0.19.8, runtime/swap_tensor (O_DIRECT files are written
in multiples of block_size, buffers are aligned to 1024 bytes x intra_op_parallelism), read on 2026-11-30; open(2) on O_DIRECT.
"""

from collections.abc import Iterator

from dsdoctor.api import DsConfig, Finding, Severity, Storage, check, not_applicable
from dsdoctor_checks.config_keys import Clash, device, parsed, told, whole

_PARAM, _OPTIMIZER = "zero_optimization.offload_param", "zero_optimization.offload_optimizer"
_ALIGNED = 4096  # bytes: what every NVMe disk and filesystem takes for O_DIRECT
_SMALL, _LARGE = 65_536, 134_217_728
_ADAM_STATES = 4  # parameter, gradient and two moments, in runtime/zero/offload_config.py


def _nvme(config: DsConfig) -> list[str]:
    used = [name for name in (_PARAM, _OPTIMIZER) if device(parsed(config), name) == "nvme"]
    if not used and not config.get("checkpoint.writer"):
        not_applicable("nothing is offloaded to NVMe")
    return used


def _aio(config: DsConfig) -> Iterator[Clash]:
    block, cause = whole(config.get("aio.block_size")), "config-value-range"
    if block is not None and (block < 1 or block % _ALIGNED):
        what = f"aio.block_size is {block}; files are opened with O_DIRECT, which takes multiples of {_ALIGNED} bytes"
        yield Clash(("aio.block_size",), what, "Set aio.block_size to 1048576", cause)
    elif block is not None and not _SMALL <= block <= _LARGE:
        what = f"aio.block_size is {block}: an NVMe disk is fast with 128 KiB to some MiB"
        yield Clash(("aio.block_size",), what, "Set aio.block_size to 1048576", cause, Severity.WARNING)
    for key in ("aio.queue_depth", "aio.intra_op_parallelism"):
        number = whole(config.get(key))
        if number is not None and number < 1:
            yield Clash((key,), f"{key} is {number}; it has to be 1 or more", f"Remove {key}", cause)


@check("CFG056", "Asynchronous I/O gets sizes that a disk takes", causes=["config-value-range"], guards=["config", "aio"])  # fmt: skip
def aio_sizes_are_taken(config: DsConfig) -> Iterator[Finding]:
    """The aio section is not checked by DeepSpeed: a block that is not aligned fails as EINVAL at the first swap."""
    _nvme(config)
    for clash in _aio(config):
        yield told(config, clash)


@check("CFG057", "The optimizer's swap has a buffer for each state", causes=["config-value-range"], severity=Severity.WARNING)  # fmt: skip
def buffers_suffice(config: DsConfig) -> Iterator[Finding]:
    """Adam has four tensors for each parameter; with fewer buffers in the pool the swapper waits for itself."""
    if _OPTIMIZER not in _nvme(config):
        not_applicable("the optimizer is not offloaded to NVMe")
    key = f"{_OPTIMIZER}.buffer_count"
    count = whole(config.get(key))
    if (
        count is not None
        and count < _ADAM_STATES
        and str(config.get("optimizer.type", "adam")).lower().startswith("adam")
    ):
        what = f"{key} is {count}, and Adam swaps {_ADAM_STATES} tensors for each parameter"
        yield told(config, Clash((key,), what, f"Set {key} to {_ADAM_STATES} or more", "config-value-range"))


@check("CFG058", "Every nvme_path of the config is a folder that can be written", causes=["nvme-path-missing", "nvme-path-permission"], guards=["config", "aio"])  # fmt: skip
def every_path_is_there(config: DsConfig, storage: Storage | None) -> Iterator[Finding]:
    """Parameters and optimizer states may swap to two places; both have to be there."""
    used = _nvme(config)
    places = [place for place in storage.places if place.role == "nvme"] if storage else []
    if len(places) < 2:
        not_applicable("there is at most one path, which NVME001 and NVME002 judge")
    for place in places[1:]:
        key = next((f"{name}.nvme_path" for name in used if config.get(f"{name}.nvme_path") == place.path), None)
        gone = not (place.exists and place.is_directory)
        if key and (gone or place.writable is False):
            what = f"{key} is {place.path}, which {'does not exist' if not place.exists else 'is not a folder' if gone else 'cannot be written'}"
            cause = "nvme-path-missing" if gone else "nvme-path-permission"
            yield told(config, Clash((key,), what, f"Name a folder on a local NVMe disk in {key}", cause))
