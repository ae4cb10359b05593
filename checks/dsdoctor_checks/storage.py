"""Checks of the place that NVMe offload would use. They apply only when such a place was asked for."""

from collections.abc import Iterator

from dsdoctor.api import (
    DsConfig,
    Finding,
    Limits,
    Place,
    Prescriber,
    Remedy,
    Severity,
    Storage,
    check,
    known,
    not_applicable,
)

_GIB = 1024**3
_BYTES_PER_PARAMETER = 18  # 16 for the optimizer's states, 2 for the parameters; seen in the swap files of 0.19.8
_TIGHT_BYTES = 20 * _GIB
_EMPTY_BYTES = 1 * _GIB
_FEW_INODES = 10_000
_REQUESTS_PER_RANK = 32 * 8  # a queue_depth of 32 for up to eight threads
_SLOW = {
    "rotational": "a rotating disk",
    "network": "a network filesystem",
    "overlay": "a container's overlay filesystem",
    "tmpfs": "memory, not a disk",
}


def _asked(storage: Storage) -> Place:
    place = storage.place("nvme")
    if place is None:
        not_applicable("no place for NVMe offload was named (--nvme, or nvme_path in the ds_config)")
    return place


def _usable(storage: Storage) -> Place:
    place = _asked(storage)
    if not place.exists or not place.is_directory:
        not_applicable("the place does not exist; see NVME001")
    return place


@check("NVME001", "The place for NVMe offload is a folder that exists", causes=["nvme-path-missing"], guards=["aio"])
def place_exists(storage: Storage, config: DsConfig | None, prescriber: Prescriber) -> Iterator[Finding]:
    """nvme_path is often copied from a tutorial, or left out; DeepSpeed then dies with a TypeError about NoneType."""
    unnamed = [
        key
        for key in ("zero_optimization.offload_optimizer", "zero_optimization.offload_param")
        if config is not None and config.get(f"{key}.device") == "nvme" and not config.get(f"{key}.nvme_path")
    ]
    if not unnamed:
        _asked(storage)
    for key in unnamed:
        if config is not None:
            yield Finding(
                message=f"{key}.device is nvme ({config.where(f'{key}.device')}), but {key}.nvme_path is not given",
                cause="nvme-path-missing",
                subject=f"{key}.nvme_path",
                remedy=Remedy(order="Name a folder on a local NVMe disk in nvme_path", safety="manual"),
            )
    place = storage.place("nvme")
    if place is None or (place.exists and place.is_directory):
        return
    state = "does not exist" if not place.exists else "is not a folder"
    yield Finding(
        message=f"{place.path} ({place.named_by}) {state}",
        cause="nvme-path-missing",
        subject=place.path,
        remedy=Remedy(
            order="Make the folder on a local NVMe disk, or name another",
            commands=(prescriber.shell(f'mkdir -p "{place.path}"'),) if not place.exists else (),
            verify=prescriber.shell(f'df -h "{place.path}"'),
        ),
    )


@check("NVME002", "The place for NVMe offload can be written", causes=["nvme-path-permission"], guards=["aio"])
def place_writable(storage: Storage, prescriber: Prescriber) -> Iterator[Finding]:
    """A mount point belongs to root until somebody gives a folder on it away."""
    place = _usable(storage)
    if not known(place.writable, f"whether {place.path} can be written"):
        sudo = "" if prescriber.root else "sudo "
        yield Finding(
            message=f"{place.path} ({place.named_by}) cannot be written by this user",
            cause="nvme-path-permission",
            subject=place.path,
            remedy=Remedy(
                order="Make a folder of your own on that disk and name it in nvme_path",
                commands=(f'{sudo}install -d -o "$USER" "{place.path}/$USER"',),
                safety="careful",
                verify=f'touch "{place.path}/$USER/x"',
            ),
        )


@check(
    "NVME003", "The place for NVMe offload is a fast local disk", causes=["nvme-no-odirect"], severity=Severity.WARNING
)
def place_fast(storage: Storage) -> Iterator[Finding]:
    """Offload reads and writes the whole optimizer in every step. Only a local NVMe or SSD keeps up."""
    place = _usable(storage)
    if place.device in _SLOW:
        yield Finding(
            message=f"{place.path} ({place.named_by}, {place.filesystem or 'unknown filesystem'}) is {_SLOW[place.device]}",
            cause="nvme-no-odirect",
            subject=place.path,
            remedy=Remedy(
                order="Name a folder on a local NVMe disk (ext4 or xfs)", commands=("lsblk -d -o NAME,ROTA,SIZE,TRAN",)
            ),
        )


@check("NVME004", "The place for NVMe offload takes direct I/O", causes=["nvme-no-odirect"], guards=["aio"])
def place_direct(storage: Storage) -> Iterator[Finding]:
    """DeepSpeed opens its swap files with O_DIRECT. tmpfs, some overlays and network filesystems refuse that."""
    place = _usable(storage)
    if not known(place.o_direct, f"whether {place.path} takes O_DIRECT"):
        said = f": {place.o_direct_error}" if place.o_direct_error else ""
        yield Finding(
            message=f"{place.path} ({place.filesystem or 'unknown filesystem'}) refused a direct write{said}",
            cause="nvme-no-odirect",
            subject=place.path,
            remedy=Remedy(
                order="Name a folder on a local disk with ext4 or xfs",
                commands=('df -T | grep -E "ext4|xfs"',),
                safety="manual",
            ),
        )


@check("NVME005", "Asynchronous I/O works at the place for NVMe offload", causes=["nvme-no-odirect"], guards=["aio"])
def place_async(storage: Storage) -> Iterator[Finding]:
    """A write through libaio was submitted there and waited for, as DeepSpeed does it."""
    place = _usable(storage)
    if place.o_direct is False:
        not_applicable("direct I/O is refused there; see NVME004")
    if not known(place.aio, f"whether asynchronous I/O works at {place.path}"):
        yield Finding(
            message=f"an asynchronous write at {place.path} failed: {place.aio_error or 'no reason given'}",
            cause="nvme-no-odirect",
            subject=place.path,
            remedy=Remedy(
                order="Name a folder on a local NVMe disk (ext4 or xfs), outside of a sandbox", safety="manual"
            ),
        )


@check("NVME006", "There is room at the place for NVMe offload", causes=["nvme-disk-full"], guards=["aio"])
def place_roomy(storage: Storage) -> Iterator[Finding]:
    """Swap files take about 18 bytes for every parameter. A full disk ends the run in the middle of a step."""
    place = _usable(storage)
    free = known(place.free_bytes, f"the free space at {place.path}")
    few = place.free_inodes is not None and 0 < place.free_inodes < _FEW_INODES
    if free >= _TIGHT_BYTES and not few:
        return
    room = f"room for the states of about {free / _BYTES_PER_PARAMETER / 1e9:.2f} billion parameters"
    what = f"{free / _GIB:.1f} GiB are free, {room}" if free < _TIGHT_BYTES else f"{place.free_inodes} inodes are free"
    yield Finding(
        message=f"{place.path} ({place.named_by}): {what}",
        cause="nvme-disk-full",
        subject=place.path,
        severity=None if free < _EMPTY_BYTES else Severity.WARNING,
        remedy=Remedy(
            order="Delete old swap files, or name a larger disk",
            commands=(f'du -sh "{place.path}"/*',),
            safety="manual",
        ),
    )


@check(
    "NVME007", "No swap files of an earlier run lie there", causes=["nvme-buffer-mismatch"], severity=Severity.WARNING
)
def place_clean(storage: Storage) -> Iterator[Finding]:
    """DeepSpeed leaves its swap files behind. They fill the disk, and files of other settings end the next run."""
    place = _usable(storage)
    if place.leftovers:
        yield Finding(
            message=f"{', '.join(place.leftovers)} of earlier runs hold {place.leftover_bytes / _GIB:.1f} GiB",
            cause="nvme-buffer-mismatch",
            subject=place.path,
            remedy=Remedy(
                order="Delete them when no run is using them",
                commands=tuple(f'rm -rf "{folder}"' for folder in place.leftovers),
                safety="careful",
            ),
        )


@check("NVME008", "The kernel has asynchronous requests to spare", causes=["aio-max-nr"], severity=Severity.WARNING)
def requests_left(storage: Storage, limits: Limits, prescriber: Prescriber) -> Iterator[Finding]:
    """All processes share fs.aio-max-nr. Databases and other runs use it up; io_setup then fails."""
    place = _asked(storage)
    most, used = known(limits.aio_max_nr, "fs.aio-max-nr"), known(limits.aio_nr, "fs.aio-nr")
    if most - used < _REQUESTS_PER_RANK:
        yield Finding(
            message=f"fs.aio-max-nr is {most}, {used} are in use: {most - used} are left for {place.path}, one rank takes up to {_REQUESTS_PER_RANK}",
            cause="aio-max-nr",
            remedy=Remedy(
                order="Raise the kernel's limit",
                commands=(f"{'' if prescriber.root else 'sudo '}sysctl -w fs.aio-max-nr=1048576",),
                safety="careful",
                verify="cat /proc/sys/fs/aio-max-nr",
            ),
        )
