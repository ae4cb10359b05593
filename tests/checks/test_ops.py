"""DeepSpeed's ops: where ds_report says [OKAY] and the machine says no, and the folders in which they are built."""

from typing import Any

import pytest
from dsdoctor_checks import ops as family

from dsdoctor import healthy as h
from dsdoctor.facts import CachedOp, CacheFolder, Caches, DsOp, DsReport, Snapshot
from dsdoctor.model import Check, Finding, Severity, Status
from dsdoctor.registry import checks_of
from dsdoctor.testing import verdict

H200_OKAY = ("fused_adam", "cpu_adam", "fp_quantizer", "cutlass_ops", "ragged_device_ops", "random_ltd", "transformer")


def report(*okay: str, no: dict[str, tuple[str, ...]] | None = None, **changes: Any) -> DsReport:
    rows = [DsOp(name=name, installed=False, compatible=True) for name in okay]
    rows += [DsOp(name=name, installed=False, compatible=False, warnings=said) for name, said in (no or {}).items()]
    return h.ds_report(ops=tuple(rows), **changes)


def only(check: Check, snapshot: Snapshot) -> Finding:
    found = verdict(check, snapshot)
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    return finding


@pytest.mark.parametrize("check", checks_of(family), ids=lambda c: c.code)
def test_a_healthy_machine_is_quiet(check: Check) -> None:
    found = verdict(check, h.healthy())
    assert found.status in (Status.PASSED, Status.NOT_APPLICABLE), (found.status, found.reason, found.findings)


@pytest.mark.parametrize("value", ["9.0a", "10.0f", "9.0a+PTX", "8.0;9.0a", "Hopper", "native", "9", "8.0,9.0"])
def test_arch_lists_that_really_end_the_build(
    value: str,
) -> None:  # each raised ValueError in DeepSpeed 0.19.8's builder
    found = verdict(family.arch_list_readable, h.healthy(h.environment(TORCH_CUDA_ARCH_LIST=value)))
    assert (found.status, found.severity) == (Status.FAILED, Severity.ERROR)
    finding = found.findings[0]
    assert value in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ("unset TORCH_CUDA_ARCH_LIST",)


@pytest.mark.parametrize("value", ["9.0", "8.0;9.0+PTX", "8.0 9.0", " 9.0 ", "12.1"])
def test_arch_lists_that_the_builder_took(value: str) -> None:
    assert (
        verdict(family.arch_list_readable, h.healthy(h.environment(TORCH_CUDA_ARCH_LIST=value))).status is Status.PASSED
    )


def test_the_letter_was_harmless_before_0190_and_the_name_never() -> None:
    old = h.deepspeed(version="0.18.9")
    letter = h.healthy(old, h.environment(TORCH_CUDA_ARCH_LIST="9.0a"))
    assert verdict(family.arch_list_readable, letter).status is Status.PASSED
    name = h.healthy(old, h.environment(TORCH_CUDA_ARCH_LIST="Hopper"))
    assert verdict(family.arch_list_readable, name).status is Status.FAILED


def test_the_note_offers_the_plain_number() -> None:
    finding = only(family.arch_list_readable, h.healthy(h.environment(TORCH_CUDA_ARCH_LIST="8.0;9.0a")))
    assert finding.remedy is not None
    assert "8.0;9.0" in (finding.remedy.note or "")


def test_what_the_h200_refuted_is_refuted() -> None:  # op_truth of a real H200 machine: OKAY and not built
    sick = h.healthy(report(*H200_OKAY))
    kernels = verdict(family.dskernels_there, sick)
    assert {f.subject for f in kernels.findings} == {"cutlass_ops", "ragged_device_ops"}
    assert kernels.severity is Severity.INFO
    assert only(family.sources_compile, sick).subject == "fp_quantizer"
    used = h.healthy(report(*H200_OKAY), h.packages({"deepspeed-mii": "0.3.0"}))
    assert verdict(family.dskernels_there, used).severity is Severity.WARNING


def test_fp_quantizer_compiles_with_cuda_128() -> None:
    fine = h.healthy(report("fp_quantizer"), h.toolkits(h.toolkit(version="12.8")))
    assert verdict(family.sources_compile, fine).status is Status.PASSED


def test_okay_without_nvcc_and_without_compiler() -> None:
    bare = h.healthy(report(*H200_OKAY), h.toolkits(h.toolkit(nvcc=None)))
    assert "CUDA ops [OKAY]" in only(family.nvcc_there, bare).message
    no_cxx = h.healthy(report(*H200_OKAY), h.compilers(cxx=h.compiler(path=None)))
    assert only(family.compiler_there, no_cxx).cause == "cxx-compiler-missing"


def test_libaio_is_an_error_only_where_nvme_is_asked_for() -> None:
    bare = h.compilers(libaio_header=None, libaio_link=None)
    assert verdict(family.libaio_there, h.healthy(bare)).severity is Severity.INFO
    asked = verdict(family.libaio_there, h.healthy(bare, h.storage(h.place())))
    assert asked.severity is Severity.ERROR
    assert asked.findings[0].remedy is not None
    assert any("install -y libaio-dev" in command for command in asked.findings[0].remedy.commands)
    config = h.ds_config({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})
    assert "offload_param.device" in verdict(family.libaio_there, h.healthy(bare, config)).findings[0].message


def test_libaio_there_and_the_probe_says_no() -> None:
    said = ("async_io requires the dev libaio .so object and headers but these were not found.",)
    finding = only(family.aio_probe_agrees, h.healthy(report(no={"async_io": said})))
    assert finding.cause == "libaio-found-but-probe-fails"
    assert "/usr/include/libaio.h" in finding.message
    old = h.healthy(report(no={"async_io": said}), h.deepspeed(version="0.13.1"))
    assert only(family.aio_probe_agrees, old).cause == "libaio-too-old"


def test_rows_that_hurt_nobody_are_only_told() -> None:
    said = ("Unable to locate CUTLASS. Install nvidia-cutlass, clone CUTLASS next to DeepSpeed, or set CUTLASS_PATH",)
    noisy = h.healthy(report(no={"evoformer_attn": said, "gds": (), "sparse_attn": ()}))
    for check in (family.cutlass_there, family.gds_quiet, family.sparse_attn_gone):
        assert verdict(check, noisy).severity is Severity.INFO
    wanted = h.healthy(report(no={"gds": ()}), h.ds_config({"aio": {"use_gds": True}}))
    assert verdict(family.gds_quiet, wanted).severity is Severity.ERROR


def test_a_lock_without_a_builder() -> None:
    def cached(age: float, alive: bool | None) -> Snapshot:
        op = CachedOp(name="cpu_adam", path="/c/cpu_adam", lock_age_s=age, lock_builder_alive=alive)
        return h.healthy(h.caches(ops=(op,)))

    finding = only(family.cache_unlocked, cached(7200.0, False))
    assert "120 min" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.commands == ('rm -f "/c/cpu_adam/lock"',)
    assert verdict(family.cache_unlocked, cached(7200.0, True)).status is Status.PASSED
    assert verdict(family.cache_unlocked, cached(30.0, None)).status is Status.PASSED
    assert verdict(family.cache_unlocked, cached(7200.0, None)).severity is Severity.WARNING


def test_an_op_that_another_torch_built() -> None:
    op = CachedOp(
        name="fused_adam", path="/c/fused_adam", shared_object="/c/fused_adam/fused_adam.so", torch_path="/old/torch"
    )
    finding = only(family.cache_fresh, h.healthy(h.caches(ops=(op,))))
    assert "/old/torch" in finding.message
    own = CachedOp(
        name="fused_adam",
        path="/c/f",
        shared_object="/c/f.so",
        torch_path=h.torch().path,
        nvcc="/usr/local/cuda/bin/nvcc",
    )
    assert verdict(family.cache_fresh, h.healthy(h.caches(ops=(own,)))).status is Status.PASSED


def test_folders_that_cannot_be_written_or_are_far_away() -> None:
    foreign = CacheFolder(
        path="/tmp/torch_extensions", because="default", exists=True, writable=False, owner_uid=1001, foreign_owner=True
    )
    finding = only(family.cache_writable, h.healthy(Caches(extensions=foreign)))
    assert "1001" in finding.message
    remote = CacheFolder(
        path="/home/me/.triton", because="default", exists=True, writable=True, filesystem="nfs4", network=True
    )
    assert "nfs4" in only(family.triton_cache_local, h.healthy(Caches(triton=remote))).message
    assert verdict(family.cache_writable, h.healthy(Caches())).status is Status.UNKNOWN


def test_python_without_headers_and_a_machine_without_memory() -> None:
    finding = only(family.python_headers, h.healthy(h.python(python_h=False)))
    assert finding.remedy is not None
    assert any("python3-dev" in command for command in finding.remedy.commands)
    tight = only(family.memory_for_builds, h.healthy(h.memory(available_bytes=3 * h.GIB)))
    assert tight.remedy is not None
    assert tight.remedy.commands == ("export MAX_JOBS=1",)


def test_a_ds_report_that_died_although_the_imports_work() -> None:
    dead = h.ds_report(
        ops=(), torch_version=None, fault_type="ModuleNotFoundError", fault="No module named 'setuptools.command'"
    )
    found = verdict(family.report_ends_well, h.healthy(dead))
    assert (found.findings[0].cause, found.severity) == ("distutils-missing-py312", Severity.WARNING)


def test_a_text_that_is_no_report_and_one_that_is_cut() -> None:
    nothing = h.ds_report(source="notes.txt", ops=(), torch_version=None, deepspeed_version=None, complete=False)
    finding = only(family.report_complete, h.healthy(nothing))
    assert "notes.txt holds no line" in finding.message
    assert finding.cause == "ds-report-unreadable"
    help_text = h.ds_report(
        source="x", ops=(), torch_version=None, deepspeed_version=None, fault="this is the help text"
    )
    assert "this is the help text" in only(family.report_complete, h.healthy(help_text)).message
    assert verdict(family.report_ends_well, h.healthy(help_text)).status is Status.NOT_APPLICABLE
    cut = report("async_io", "fused_adam", source="paste.txt", complete=False)
    finding = only(family.report_complete, h.healthy(cut))
    assert "after fused_adam" in finding.message
    assert finding.cause == "ds-report-unreadable"


def test_a_report_from_the_login_node() -> None:
    pasted = report("deepspeed_shm_comm", source="paste.txt", accelerator="cpu", accelerator_fallback=True)
    assert only(family.report_saw_gpu, h.healthy(pasted)).cause == "login-node-report"
    cpu_build = report("deepspeed_shm_comm", source="paste.txt", accelerator="cpu", torch_version="2.13.0+cpu")
    assert verdict(family.report_saw_gpu, h.healthy(cpu_build, h.no_gpus())).status is Status.PASSED


def test_the_rest_of_a_failed_build_is_named_with_its_folder() -> None:
    rest = CachedOp(name="fused_adam", path="/c/fused_adam", torch_path=f"{h.SITE}/torch")
    finding = only(family.failed_builds, h.healthy(h.caches(ops=(rest,))))
    assert finding.subject == "fused_adam"
    assert "/c/fused_adam" in finding.message
    building = CachedOp(name="fused_adam", path="/c/fused_adam", lock_age_s=3.0, lock_builder_alive=True)
    assert verdict(family.failed_builds, h.healthy(h.caches(ops=(building,)))).status is Status.PASSED
