"""Checks of the folders where ops and Triton kernels are built and kept."""

from collections.abc import Iterator

from dsdoctor.api import Caches, Finding, Prescriber, Remedy, Severity, Toolkits, Torch, check, known, not_applicable

_STALE_LOCK_S = 15 * 60.0  # no op takes that long on one machine; the slowest seen took 678 s


@check(
    "OPS020",
    "No build of an op is locked by a process that is gone",
    causes=["jit-lock-hang"],
    guards=["cpp-build", "cuda-build"],
)
def cache_unlocked(caches: Caches, prescriber: Prescriber) -> Iterator[Finding]:
    """A build that was killed leaves a file called lock. The next run waits for it for ever, without a word."""
    for op in caches.ops:
        if op.lock_age_s is None or op.lock_builder_alive:
            continue
        old = op.lock_age_s > _STALE_LOCK_S
        if op.lock_builder_alive is None and not old:
            continue
        age = f"{op.lock_age_s / 60:.0f} min" if op.lock_age_s >= 60 else f"{op.lock_age_s:.0f} s"
        alive = (
            "and nothing builds there"
            if op.lock_builder_alive is False
            else "and whether something builds there is not known"
        )
        yield Finding(
            message=f"{op.path} holds a lock that is {age} old, {alive}: the next run that needs {op.name} waits for ever",
            cause="jit-lock-hang",
            subject=op.name,
            severity=None if op.lock_builder_alive is False else Severity.WARNING,
            remedy=Remedy(
                order="Delete the lock; when no run is building",
                commands=(prescriber.shell(f'rm -f "{op.path}/lock"'),)
                if not prescriber.windows
                else (f'del "{op.path}\\lock"',),
                safety="careful",
            ),
        )


def _tag(version: str) -> str:
    """A torch release as part of a folder's name."""
    return "".join(c if c.isalnum() or c == "." else "_" for c in version)


@check(
    "OPS021",
    "Cached ops were built for this torch and this nvcc",
    causes=["stale-extension-cache"],
    severity=Severity.WARNING,
)
def cache_fresh(caches: Caches, torch: Torch, toolkits: Toolkits | None, prescriber: Prescriber) -> Iterator[Finding]:
    """All environments of a user share one cache: each builds the op anew when it is its turn, and a run that loads it then hangs or crashes."""
    if not caches.ops:
        not_applicable("no op was built yet")
    nvcc = toolkits.selected.nvcc if toolkits is not None and toolkits.selected is not None else None
    for op in caches.ops:
        other_torch = op.torch_path is not None and op.torch_path.rstrip("/") != torch.path.rstrip("/")
        other_nvcc = op.nvcc is not None and nvcc is not None and op.nvcc != nvcc
        if op.shared_object is None or not (other_torch or other_nvcc):
            continue
        built = f"torch in {op.torch_path}" if other_torch else f"{op.nvcc}"
        here = torch.path if other_torch else nvcc
        yield Finding(
            message=f"the cached {op.name} was built with {built}; here it is {here}",
            cause="stale-extension-cache",
            subject=op.name,
            remedy=Remedy(
                order="Give this environment a folder of its own for built ops",
                commands=(prescriber.set("TORCH_EXTENSIONS_DIR", f"~/.cache/torch_extensions_{_tag(torch.version)}"),),
                note="`dsdoctor ops --clean` shows what in the shared folder is of no use to anybody",
            ),
        )


@check(
    "OPS022",
    "The folder for built ops can be written",
    causes=["torch-extensions-tmp-permission"],
    guards=["cpp-build", "cuda-build"],
)
def cache_writable(caches: Caches, prescriber: Prescriber) -> Iterator[Finding]:
    """Often a shared folder that the first user made for himself alone, or a home that cannot be written."""
    folder = known(caches.extensions, "the folder for built ops")
    if known(folder.writable, f"whether {folder.path} can be written"):
        return
    owner = f" and belongs to user {folder.owner_uid}" if folder.foreign_owner and folder.owner_uid is not None else ""
    state = "cannot be written" if folder.exists else "cannot be made"
    yield Finding(
        message=f"{folder.path} ({folder.because}) {state}{owner}: no op can be built",
        cause="torch-extensions-tmp-permission",
        subject=folder.path,
        remedy=Remedy(
            order="Build in a folder of your own",
            commands=(prescriber.set("TORCH_EXTENSIONS_DIR", "$HOME/torch_extensions"),),
            note=None
            if folder.because != "TORCH_EXTENSIONS_DIR"
            else "TORCH_EXTENSIONS_DIR is set to the folder that fails",
        ),
    )


@check(
    "OPS023",
    "Triton's cache is on a local disk",
    causes=["triton-cache-nfs"],
    severity=Severity.WARNING,
)
def triton_cache_local(caches: Caches, prescriber: Prescriber) -> Iterator[Finding]:
    """On a network folder several jobs replace each other's files, and every look-up is slow."""
    folder = known(caches.triton, "Triton's cache folder")
    if folder.network:
        yield Finding(
            message=f"Triton's cache {folder.path} ({folder.because}) is on a network filesystem ({folder.filesystem})",
            cause="triton-cache-nfs",
            subject=folder.path,
            remedy=Remedy(
                order="Keep the cache on a local disk",
                commands=(prescriber.set("TRITON_CACHE_DIR", "/tmp/$USER/triton"),),
            ),
        )


@check(
    "OPS024",
    "No cached op is the rest of a build that failed",
    causes=["op-so-missing-after-failed-build"],
    severity=Severity.INFO,
)
def failed_builds(caches: Caches, prescriber: Prescriber) -> Iterator[Finding]:
    """A folder without its shared object tells of a build that failed; the first error line was in that run's output."""
    for op in caches.ops:
        if op.shared_object is None and op.lock_age_s is None:
            yield Finding(
                message=f"{op.path} holds no compiled {op.name}: its last build failed or was ended",
                cause="op-so-missing-after-failed-build",
                subject=op.name,
                remedy=Remedy(
                    order="Look for FAILED: in the output of that run; the next run builds it again",
                    commands=(prescriber.shell(f'rm -rf "{op.path}"'),)
                    if not prescriber.windows
                    else (f'rmdir /s /q "{op.path}"',),
                    safety="careful",
                ),
            )
