"""Reports for the tests of the view: small, readable, and odd where a machine is odd."""

from dsdoctor.facts import Environment, Host, Purpose, Python, Snapshot, Unavailable
from dsdoctor.model import (
    Capability,
    Cause,
    Counts,
    Evidence,
    Finding,
    Platform,
    Proof,
    Remedy,
    Report,
    Severity,
    Status,
    Step,
    Verdict,
)

INSTALL_NVCC = "sudo apt-get update && sudo apt-get install -y cuda-toolkit-12-8"
SET_HOME = "export CUDA_HOME=/usr/local/cuda-12.8"
INSTALL_NINJA = "/home/u/venv/bin/python -m pip install ninja"


def passed(code: str, title: str, **rest: object) -> Verdict:
    return _verdict(code, title, Status.PASSED, **rest)


def unknown(code: str, title: str, reason: str, *waits_for: str) -> Verdict:
    return _verdict(code, title, Status.UNKNOWN, reason=reason, waits_for=waits_for)


def failed(code: str, title: str, *findings: Finding, severity: Severity = Severity.ERROR, **rest: object) -> Verdict:
    return _verdict(code, title, Status.FAILED, findings=findings, severity=severity, **rest)


def _verdict(code: str, title: str, status: Status, **rest: object) -> Verdict:
    fields = {"severity": Severity.ERROR, **rest}
    return Verdict(code=code, title=title, family=code.rstrip("0123456789"), status=status, **fields)  # type: ignore[arg-type]


def snapshot(**sections: object) -> Snapshot:
    python = Python(
        executable="/home/u/venv/bin/python",
        chosen_because="active virtual environment",
        version="3.11.7",
        prefix="/home/u/venv",
        base_prefix="/usr",
        environment="venv",
    )
    fields: dict[str, object] = {
        "purpose": Purpose(name="single-gpu", because="one GPU"),
        "host": Host(system="linux", kernel="6.1.0", machine="x86_64", distribution="debian", package_manager="apt"),
        "python": python,
        "environment": Environment(variables={"CUDA_HOME": "/usr/local/cuda-11.8"}),
        "unavailable": {"smoke": Unavailable(kind="not-asked", detail="no smoke run was asked for (--smoke)")},
        **sections,
    }
    return Snapshot(tool_version="0", **fields)  # type: ignore[arg-type]


def report(verdicts: tuple[Verdict, ...], **rest: object) -> Report:
    fields: dict[str, object] = {
        "outcome": "healthy",
        "summary": f"Nothing is wrong: {len(verdicts)} checks passed.",
        "patient": "/home/u/venv/bin/python (Python 3.11.7, venv; active virtual environment)",
        "platform": Platform(headline="Linux with one NVIDIA GPU", can="ZeRO 1 to 3, offload", instead=None),
        "counts": Counts(),
        "facts": snapshot(),
        **rest,
    }
    return Report(tool_version="0", verdicts=verdicts, **fields)  # type: ignore[arg-type]


PASSING = (
    passed("CUDA012", "nvcc and torch agree on the CUDA major version"),
    passed("CXX004", "ninja is on PATH"),
    passed("DS001", "DeepSpeed is installed", proof=Proof.PROBED),
    passed("HOST001", "the operating system runs DeepSpeed"),
)


def healthy() -> Report:
    ready = (Capability(name="zero2", title="ZeRO stage 2", state="ready", proof=Proof.RAN),)
    return report(PASSING, capabilities=ready)


def sick() -> Report:
    """nvcc of another CUDA than torch's, no ninja, and an import that was not seen."""
    nvcc = Finding(
        message="nvcc is 11.8, torch was built for CUDA 12.8",
        cause="torch-cuda-vs-nvcc-major",
        evidence=(Evidence(where="/usr/local/cuda-11.8/bin/nvcc --version", text="release 11.8, V11.8.89"),),
        remedy=Remedy(
            order="Install the CUDA 12.8 toolkit and point CUDA_HOME to it",
            commands=(INSTALL_NVCC, SET_HOME),
            safety="careful",
            verify="$CUDA_HOME/bin/nvcc --version",
            note="needs about 5 GB",
        ),
    )
    ninja = Finding(
        message="ninja is not on PATH",
        cause="ninja-missing",
        remedy=Remedy(order="Install ninja into this environment", commands=(INSTALL_NINJA,)),
    )
    verdicts = (
        failed("CUDA012", "nvcc and torch agree on the CUDA major version", nvcc),
        passed("CUDA013", "CUDA_HOME is a CUDA toolkit"),
        failed("CXX004", "ninja is on PATH", ninja, severity=Severity.WARNING),
        unknown("DS002", "DeepSpeed imports", "the import gave no answer within 60 s", "deepspeed_live"),
        passed("HOST001", "the operating system runs DeepSpeed"),
        _verdict("NET001", "NCCL is there", Status.NOT_APPLICABLE, reason="one GPU"),
        _verdict("MEM001", "the memory suffices", Status.CRASHED, reason="ZeroDivisionError: division by zero"),
    )
    return report(
        verdicts,
        outcome="problems",
        summary="1 error, 1 warning. Mend first: nvcc of another CUDA than torch.",
        counts=Counts(failed=2, errors=1, warnings=1, unknown=1, passed=2, not_applicable=1, crashed=1),
        capabilities=(
            Capability(name="zero2", title="ZeRO stage 2", state="ready", proof=Proof.PROBED),
            Capability(name="fused-adam", title="Fused Adam", state="blocked", blocked_by=("CUDA012", "CXX004")),
            Capability(name="trainer", title="HF Trainer", state="unknown", because="DS002: the import gave no answer"),
            Capability(name="nodes", title="Several nodes", state="not_applicable", because="no hostfile"),
        ),
        causes=(_cause("torch-cuda-vs-nvcc-major", "nvcc of another CUDA than torch", "CUDA012"),
                _cause("ninja-missing", "ninja is not on PATH", "CXX004")),
        plan=(
            Step(number=1, cause="torch-cuda-vs-nvcc-major", order=nvcc.remedy.order, why=nvcc.message,  # type: ignore[union-attr]
                 commands=(INSTALL_NVCC, SET_HOME), safety="careful", clears=("CUDA012",),
                 verify="$CUDA_HOME/bin/nvcc --version", note="needs about 5 GB"),
            Step(number=2, cause="ninja-missing", order="Install ninja into this environment", why=ninja.message,
                 commands=(INSTALL_NINJA,), clears=("CXX004",), severity=Severity.WARNING),
        ),
    )  # fmt: skip


def _cause(slug: str, title: str, code: str) -> Cause:
    return Cause(cause=slug, title=title, layer="toolkit", severity=Severity.ERROR, codes=(code,), proof=Proof.DECLARED)


def unknown_heavy() -> Report:
    """A machine whose patient could not be asked: nearly nothing is decided."""
    why = "the patient did not answer within 60 s"
    verdicts = tuple(unknown(f"TORCH{n:03}", f"torch is sound in respect {n}", why, "torch_live") for n in range(1, 21))
    return report(
        (*verdicts, passed("HOST001", "the operating system runs DeepSpeed")),
        outcome="incomplete",
        summary="Nothing wrong in what could be looked at, but 20 checks could not be decided.",
    )


def huge() -> Report:
    """200 verdicts in 10 families; every fifth has failed."""
    verdicts = []
    for number in range(200):
        code, title = f"{'ABCDEFGHIJ'[number // 20] * 3}{number:03}", f"part {number} is sound"
        finding = Finding(message=f"part {number} is broken", cause=f"part-{number}")
        verdicts.append(failed(code, title, finding) if number % 5 == 0 else passed(code, title))
    return report(tuple(verdicts), outcome="problems", summary="40 errors, 0 warnings.")


def markup() -> Report:
    """Text of a machine that looks like markup, carries terminal escapes, and is long."""
    finding = Finding(
        message="the folder [red]/tmp/[/red] is \x1b[31mfull\x1b[0m [link=x]",
        cause="disk-[bold]full",
        subject="[/]",
        evidence=(Evidence(where="df [/tmp]", text="[100%]\x07 \u202eused"),),
        remedy=Remedy(
            order="Remove [old] files", commands=("rm -r '/tmp/[old]'\x1b]52;c;ZXZpbA==\x07",), verify="df [/tmp]"
        ),
    )
    verdict = failed("MEM001", "the folder [/tmp] has room", finding)
    step = Step(number=1, cause="disk-[bold]full", order="Remove [old] files", why=finding.message,
                commands=finding.remedy.commands, clears=("MEM001",))  # type: ignore[union-attr]  # fmt: skip
    blocked = Capability(name="x", title="Offload to [nvme]", state="unknown", because="[not] known [/b]")
    return report(
        (verdict,),
        outcome="problems",
        summary="1 error [b]here[/b]",
        patient="/home/[me]/python",
        platform=Platform(headline="Linux [/odd]", can="[all]"),
        plan=(step,),
        capabilities=(blocked,),
        facts=snapshot(environment=Environment(variables={"PS1": "[\x1b[31m\\u[/red]"})),
    )
