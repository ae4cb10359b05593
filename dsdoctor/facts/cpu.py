"""The processor, as DeepSpeed's op builders see it (they ask py-cpuinfo for the flags)."""

from typing import Literal

from dsdoctor.facts.base import Fact


class Cpu(Fact, frozen=True, kw_only=True):
    model: str | None = None
    vendor: str | None = None
    architecture: str | None = None  # py-cpuinfo's arch: "X86_64", "ARM_8", "PPC_64"
    logical_cores: int | None = None
    usable_cores: int | None = None  # after affinity and cgroup cpu quota
    flags: tuple[str, ...] = ()
    simd: Literal["avx512", "avx2", "neon", "sve", "scalar"] | None = None  # what cpu_adam would be compiled for
    read_from: Literal["proc", "py-cpuinfo", "platform"] = "proc"
