"""The smoke run: when it proves health, and what it names when it dies."""

import re
from typing import Any

import msgspec
import pytest
from dsdoctor_checks import run as family
from dsdoctor_checks.run_text import failures

from dsdoctor import healthy as h
from dsdoctor.facts import Smoke, SmokeSwap
from dsdoctor.model import Finding, Proof, Status
from dsdoctor.testing import verdict


def told(smoke: Smoke) -> Finding:
    found = verdict(family.runs_end, h.healthy(smoke))
    assert found.status is Status.FAILED, (found.status, found.reason)
    (finding,) = found.findings
    assert finding.remedy is not None
    return finding


def fallen(outcome: str = "failed", *, output_tail: str | None = None, **rank: Any) -> Smoke:
    return h.smoke(h.fallen_run(outcome=outcome, output_tail=output_tail, rank=rank))


def failed(error_type: str, error: str, output: str = "") -> Smoke:
    return fallen(error_type=error_type, error=error, output_tail=output)


def test_runs_that_came_to_their_end_are_proof() -> None:
    found = verdict(family.runs_end, h.healthy(h.smoke()))
    assert (found.status, found.proof) == (Status.PASSED, Proof.RAN)
    assert verdict(family.runs_end, h.healthy()).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("error_type", "error", "output", "cause"),
    [
        ("ValueError", "invalid literal for int() with base 10: '0a'", "", "arch-list-suffix-crash"),
        ("RuntimeError", "Unable to JIT load the deepspeed_shm_comm op due to ninja not being installed.", "", "ninja-missing"),
        ("RuntimeError", "Error building extension 'cpu_adam'", "/bin/sh: 1: c++: not found", "cxx-compiler-missing"),
        ("RuntimeError", "Error building extension 'random_ltd'", "/usr/bin/ld: cannot find -lcurand", "libcurand-link-failure"),
        ("RuntimeError", "Error building extension 'fused_adam'", "/usr/bin/ld: cannot find -lcudart: No such file or directory", "libcudart-link-failure"),
        ("RuntimeError", "Error building extension 'fused_adam'", "gcc: No such file or directory\nnvcc fatal   : Failed to preprocess host compiler properties.", "cxx-compiler-missing"),
        ("RuntimeError", "Error building extension 'fused_adam'", "/usr/include/c++/11/bits/std_function.h:435:145: error: parameter packs not expanded with '...':", "compiler-mismatch-template-errors"),
        ("RuntimeError", "Error building extension 'cpu_adam'", "ATen/ATen.h:5:2: error: #error C++20 or later compatible compiler is required to use ATen.", "nvcc-no-cxx20"),
        ("RuntimeError", "Error building extension 'fused_adam'", "fatal error: cusparse.h: No such file or directory", "cuda-math-headers-missing"),
        ("RuntimeError", "Unable to JIT load the async_io op due to it not being compatible due to hardware/software issue. None", "", "libaio-missing"),
        ("torch.distributed.DistNetworkError", "The server socket has failed to listen on any local network address. port: 29500, EADDRINUSE", "", "port-in-use"),
        ("ModuleNotFoundError", "No module named 'mpi4py'", "", "mpi4py-missing"),
        ("RuntimeError", "Distributed package doesn't have NCCL built in", "", "cpu-only-torch"),
        ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 MiB.", "", "gpu-busy"),
        ("ImportError", "libaio.so.1: cannot open shared object file: No such file or directory", "", "libaio-missing"),
        ("RuntimeError", "CUDA error: out of memory", "", "gpu-busy"),
        ("RuntimeError", "CUDA error: out of memory", "misc/alloc.h:120 NCCL WARN Failed to CUDA host alloc 33554432 bytes", "pinned-memory-ram"),
        ("PermissionError", "[Errno 13] Permission denied: '/data/zero_stage_3'", "", "nvme-path-permission"),
        ("AssertionError", "", "deepspeed_aio:   open for write  failed on /mnt/n/zero_stage_3/float32params/rank0/0_param.tensor.swp error = 13", "nvme-path-permission"),
        ("AssertionError", "", "deepspeed_aio:   open for write  failed on /dev/shm/n/zero_stage_3/float32params/rank0/0_param.tensor.swp error = 22", "nvme-no-odirect"),
        ("AssertionError", "", "deepspeed_aio:   open for write  failed on /mnt/n/zero_stage_3/optimizer/rank0/0.tensor.swp error = 28", "nvme-disk-full"),
        ("AssertionError", "", "deepspeed_aio:   open for write  failed on /mnt/n/zero_stage_3/optimizer/rank0/0.tensor.swp error = 2", "nvme-path-missing"),
        ("AssertionError", "", "deepspeed_aio:   open for write  failed on /mnt/n/zero_stage_3/optimizer/rank0/0.tensor.swp error = 24", "too-many-open-files"),
        ("OSError", "[Errno 28] No space left on device: '/mnt/n/zero_stage_3/optimizer/rank0'", "", "nvme-disk-full"),
        ("OSError", "[Errno 28] No space left on device: '/dev/shm/torch_42'", "", "shm-too-small"),
        ("RuntimeError", "unable to write to file </torch_4242_1_0>: No space left on device (28)", "", "shm-too-small"),
        ("OSError", "[Errno 28] No space left on device: '/tmp/tmpxyz'", "", "build-no-space"),
        ("RuntimeError", "[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0", "", "run-no-space"),
        ("TypeError", "expected str, bytes or os.PathLike object, not NoneType", "", "nvme-path-missing"),
        ("AssertionError", "More elements 4194304 than buffer size 1000000", "", "config-value-range"),
        ("AssertionError", "Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 5 != 2 * 2 * 1", "", "batch-size-equation"),
        ("AssertionError", "Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided", "", "batch-size-equation"),
        ("pydantic_core._pydantic_core.ValidationError", "1 validation error for DeepSpeedZeroConfig\nnosuch\n  Extra inputs are not permitted [type=extra_forbidden, input_value=1, input_type=int]", "", "config-unknown-zero-key"),
        ("pydantic_core._pydantic_core.ValidationError", "1 validation error for DeepSpeedZeroConfig\nstage\n  Input should be 0, 1, 2, 3 or 3 [type=enum, input_value=7, input_type=int]", "", "config-value-range"),
        ("pydantic_core._pydantic_core.ValidationError", "1 validation error for DeepSpeedZeroConfig\noffload_optimizer\n  Input should be a valid dictionary or instance of DeepSpeedZeroOffloadOptimizerConfig [type=model_type, input_value=True, input_type=bool]", "", "config-wrong-type"),
        ("TypeError", "'>' not supported between instances of 'str' and 'int'", "", "auto-unsupported-key"),
        ("TypeError", "unsupported operand type(s) for //: 'str' and 'int'", "", "auto-unsupported-key"),
        ("AssertionError", "bfloat16 and fp16 modes cannot be simultaneously enabled", "", "fp16-bf16-both"),
        ("ValueError", "Duplicate keys in DeepSpeed config: ['train_batch_size']", "", "config-duplicate-key"),
        ("hjson.scanner.HjsonDecodeError", "Found ',' where a key name was expected", "", "config-syntax"),
        ("binascii.Error", "Incorrect padding", "", "config-path-not-found"),
        ("AssertionError", "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism", "", "zero-pipeline-incompatible"),
        ("ValueError", "Please correct the following DeepSpeed config values that mismatch TrainingArguments values:\n- ds bf16.enabled=True vs hf bf16|bf16_full_eval=False", "", "hf-ds-mismatch"),
        ("AssertionError", "AdamWW is not a supported DeepSpeed Optimizer", "", "optimizer-unknown"),
        ("AssertionError", "You are using an untested ZeRO Optimizer. Please add <\"zero_allow_untested_optimizer\": true> in the configuration file to use it.", "", "optimizer-untested"),
        ("RuntimeError", "DeepSpeed was not used: the prepared model is a DistributedDataParallel", "", "accelerate-not-deepspeed-engine"),
        ("ModuleNotFoundError", "No module named 'accelerate'", "", "package-missing"),
        ("ImportError", "Using the `Trainer` with `PyTorch` requires `accelerate>=1.1.0`: Please run `pip install transformers[torch]`", "", "package-missing"),
        ("torch.distributed.DistBackendError", "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=60000) ran for 60008 milliseconds before timing out.", "", "nccl-watchdog-timeout"),
        ("torch.distributed.DistBackendError", "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 217 'peer access is not supported between these two devices'", "", "p2p-broken-consumer-gpu"),
        ("torch.distributed.DistBackendError", "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 1 'invalid argument'", "", "nccl-cuda-error"),
        ("torch.distributed.DistBackendError", "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\nError while creating shared memory segment /dev/shm/nccl-gXnCTm (size 9637888), error: No space left on device (28)", "", "shm-too-small"),
        ("RuntimeError", "PyTorch version mismatch! DeepSpeed ops were compiled and installed with a different version", "", "prebuilt-ops-torch-mismatch"),
    ],
)  # fmt: skip
def test_the_text_of_a_failure_names_its_cause(error_type: str, error: str, output: str, cause: str) -> None:
    finding = told(failed(error_type, error, output))
    assert finding.cause == cause
    assert error[:40] in finding.message
    assert "initialize" in finding.message


@pytest.mark.parametrize("phase", ["import torch", "import deepspeed"])
def test_only_a_run_that_stopped_in_an_import_blames_the_import(phase: str) -> None:
    assert told(fallen("timed-out", last_phase=phase)).cause == "import-hangs"
    assert told(fallen("exited", exit_code=7, last_phase=phase)).cause == "import-crashes"
    raised = fallen("failed", error_type="WeirdError", error="new", last_phase=phase)
    assert told(raised).cause == "import-crashes"


@pytest.mark.parametrize("phase", ["initialize", "first step", "steps", None])
def test_a_run_that_failed_later_does_not_blame_the_import(phase: str | None) -> None:
    ended = told(fallen("exited", exit_code=7, last_phase=phase))
    assert ended.cause == "smoke-fails"
    assert "exit code 7" in ended.message
    assert (phase or "its start") in ended.message


BUILD = """Error building extension 'cpu_adam': [1/3] c++ -MMD -Werror -DTORCH_EXTENSION_NAME=cpu_adam -c /s/cpu_adam.cpp
FAILED: [code=1] cpu_adam.o
c++ -MMD -MF cpu_adam.o.d -c /s/cpu_adam.cpp
{0}
/s/simd.h:13:1: error: something after it
ninja: build stopped: subcommand failed.
"""


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("/s/simd.h:12:3: error: expected unqualified-id before '}'", "op-build-fails"),
        ("/s/cpu_adam.cpp:1:10: fatal error: foo.h: No such file or directory", "op-build-fails"),
        ("cpu_adam.cpp(12): error C2065: 'ssize_t': undeclared identifier", "op-build-fails"),
        ("cpu_adam.o: undefined reference to `omp_get_max_threads'", "op-build-fails"),
        ("c++: fatal error: Killed signal terminated program cc1plus", "compile-oom"),
        ("/bin/sh: 1: c++: not found", "cxx-compiler-missing"),
    ],
)
def test_a_build_that_fails_is_told_by_the_first_error_of_the_compiler(line: str, cause: str) -> None:
    finding = told(failed("RuntimeError", BUILD.format(line)))
    assert finding.cause == cause
    assert line in finding.message
    assert "cpu_adam" in finding.message
    assert "-DTORCH_EXTENSION_NAME" not in finding.message, "the compiler's command says nothing"
    assert any(line in evidence.text for evidence in finding.evidence)


def test_a_build_that_fails_without_a_word_still_names_the_op() -> None:
    finding = told(failed("RuntimeError", "Error building extension 'cpu_adam'"))
    assert finding.cause == "op-build-fails"
    assert "cpu_adam" in finding.message


def test_runs_that_were_not_tried_are_no_proof() -> None:
    lost = h.smoke_run(outcome="not-started", because="no such file", losses=(), ranks=())
    alone = h.smoke_run("pipeline", outcome="not-applicable", because="needs 2 ranks, there is 1", losses=(), ranks=())
    unknown = verdict(family.runs_end, h.healthy(h.smoke(alone, lost)))
    assert (unknown.status, "no such file" in str(unknown.reason)) == (Status.UNKNOWN, True)
    idle = verdict(family.runs_end, h.healthy(h.smoke(alone)))
    assert (idle.status, idle.reason) == (Status.NOT_APPLICABLE, "pipeline: needs 2 ranks, there is 1")
    assert verdict(family.runs_end, h.healthy(h.smoke(alone, h.smoke_run()))).status is Status.PASSED


def test_several_runs_may_fall_each_with_its_own_finding() -> None:
    lost = {"error_type": "PermissionError", "error": "[Errno 13] Permission denied: '/data/zero_stage_3'"}
    runs = (h.smoke_run(), h.fallen_run("zero3-nvme", rank=lost), h.fallen_run("moe", rank={"error": "odd"}))
    found = verdict(family.runs_end, h.healthy(h.smoke(*runs)))
    assert [(f.subject, f.cause) for f in found.findings] == [
        ("zero3-nvme", "nvme-path-permission"),
        ("moe", "smoke-fails"),
    ]


def test_warnings_of_every_run_do_not_push_out_the_last_words() -> None:
    noise = "/env/torch/distributed/c10d_logger.py:83: FutureWarning: `torch.distributed.all_gather_into_tensor` is deprecated.\n  return func(*args, **kwargs)\n"
    built = "DeepSpeed deepspeed.ops.comm.deepspeed_shm_comm_op built successfully\n"
    finding = told(failed("WeirdError", "new", f"the last word\n{built}{noise * 20}"))
    assert finding.evidence[0].text == "the last word"


def test_a_value_that_is_refused_is_told_with_its_key() -> None:
    error = "1 validation error for DeepSpeedZeroConfig\nnosuch\n  Extra inputs are not permitted [type=extra_forbidden, input_value=1, input_type=int]\n    For further information visit https://errors.pydantic.dev/2.14/v/extra_forbidden"
    run = h.fallen_run("config", config="my/ds.json", device=None, accelerator=None,
                       rank={"error_type": "ValidationError", "error": error})  # fmt: skip
    finding = told(h.smoke(run))
    assert finding.message.startswith(
        "the smoke run (config, my/ds.json) failed in initialize: ValidationError: 1 validation error"
    )
    assert "nosuch: Extra inputs are not permitted" in finding.message
    assert finding.remedy is not None
    assert "nosuch" in finding.remedy.order


AT_IMPORT = """ [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.
 [WARNING]  async_io: please install the libaio-dev package with apt
 [WARNING]  If libaio is already installed (perhaps from source), try setting the CFLAGS and LDFLAGS environment variables to where it can be found.
 [WARNING]  Please specify the CUTLASS repo directory as environment variable $CUTLASS_PATH
[2026-11-30 12:00:00,000] [WARNING] [real_accelerator.py:209:get_accelerator] Setting accelerator to CPU.
"""


@pytest.mark.parametrize(
    ("error", "cause"),
    [("The server socket has failed to listen, EADDRINUSE", "port-in-use"), ("nobody saw this before", "smoke-fails")],
)
def test_what_older_releases_warn_of_at_import_is_no_cause(error: str, cause: str) -> None:
    assert told(failed("RuntimeError", error, AT_IMPORT)).cause == cause


def test_the_error_of_the_rank_counts_before_what_else_was_printed() -> None:
    finding = told(
        failed("AssertionError", "More elements 9 than buffer size 4", "ninja is required to load C++ extensions")
    )
    assert finding.cause == "config-value-range"


def test_an_unseen_failure_keeps_its_own_words() -> None:
    finding = told(failed("WeirdError", "nobody saw this before", "line one\nline two"))
    assert "nobody saw this before" in finding.message
    assert finding.evidence[0].text.endswith("line two")


READ_ERROR = (  # gloo of torch 2.13, when the other rank was gone
    "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:44766: Connection reset by "
    "peer. This is typically caused by a remote worker hanging or bugs in the application. Check the logs of the remote worker"
)


def test_the_rank_that_fell_first_is_named_and_the_others_were_only_torn_down() -> None:
    first = {
        "error_type": "ValueError",
        "error": "invalid literal for int() with base 10: '0a'",
        "last_phase": "first step",
    }
    finding = told(h.smoke(h.fallen_run("zero3", fell=2, world_size=4, rank=first)))
    assert "zero3 on NVIDIA H200, 4 ranks" in finding.message
    assert "rank 2 fell first" in finding.message
    assert "in first step: ValueError: invalid literal" in finding.message
    assert "ranks 0, 1, 3 were only torn down" in finding.message
    assert finding.remedy is not None
    assert finding.remedy.verify == "dsdoctor smoke zero3 --ranks 4"


def test_a_rank_that_only_noticed_is_told_with_the_one_that_fell() -> None:
    run = h.fallen_run(world_size=2, fell=1, outcome="signal", rank={"signal": "SIGKILL"})
    noticed = h.smoke_rank(0, ending="failed", error_type="RuntimeError", error=READ_ERROR, last_phase="steps")
    finding = told(h.smoke(msgspec.structs.replace(run, ranks=(noticed, run.ranks[1]))))
    assert "rank 1 fell first, it was ended by SIGKILL" in finding.message
    assert "rank 0 was left without it (RuntimeError: [" in finding.message


def test_an_echo_of_another_rank_never_outranks_the_root() -> None:
    """The clock may see the rank first that noticed; what counts is the rank that has a reason."""
    run = h.fallen_run(world_size=2, rank={"error_type": "RuntimeError", "error": READ_ERROR})
    dead = h.smoke_rank(1, ending="failed", error_type="AssertionError", last_phase="steps",
                        error="More elements 4194304 than buffer size 1000000")  # fmt: skip
    finding = told(h.smoke(msgspec.structs.replace(run, ranks=(run.ranks[0], dead))))
    assert finding.cause == "config-value-range"
    assert "rank 1 failed in steps" in finding.message
    assert "4194304" in str(finding.remedy)


@pytest.mark.parametrize(
    "echo",
    [
        READ_ERROR,
        "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, remote process exited or there was a network error, NCCL version 2.28.9\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\nLast error:\nsocketProgress: Connection closed by remote peer 10.0.0.2<41010>",
        "Timed out after 5 seconds waiting for clients. 1/2 clients joined.",
    ],
)
def test_nothing_but_echoes_says_so_and_blames_nothing(echo: str) -> None:
    finding = told(h.smoke(h.fallen_run(world_size=2, rank={"error_type": "RuntimeError", "error": echo})))
    assert finding.cause == "smoke-fails"
    assert "an echo" in finding.message


def test_the_words_of_nccl_count_and_are_shown() -> None:
    words = "rank 0: host:12:99 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-aB3 to 9637892 bytes, error: No space left on device (28)"
    run = h.fallen_run(world_size=2, rank={"error_type": "DistBackendError", "error": "NCCL error in: NCCLUtils.cpp"},
                       aftermath=h.aftermath(nccl_words=words))  # fmt: skip
    finding = told(h.smoke(run))
    assert finding.cause == "shm-too-small"
    assert any("nccl-aB3" in evidence.text for evidence in finding.evidence)


def test_a_full_swap_folder_is_told_from_a_full_temporary_one() -> None:
    error = {"error_type": "OSError", "error": "[Errno 28] No space left on device: '/mnt/my nvme/dsdoctor-1/x.swp'"}
    swap = SmokeSwap(path="/mnt/my nvme")
    finding = told(h.smoke(h.fallen_run("zero3-nvme", swap=swap, rank=error)))
    assert finding.cause == "nvme-disk-full"
    assert finding.remedy is not None
    assert finding.remedy.verify == "dsdoctor smoke zero3-nvme --nvme '/mnt/my nvme'"
    assert told(h.smoke(h.fallen_run("zero2", rank=error))).cause == "build-no-space"
    refused = {"error_type": "PermissionError", "error": "[Errno 13] Permission denied: '/mnt/my nvme/dsdoctor-1'"}
    assert told(h.smoke(h.fallen_run("zero3-nvme", swap=swap, rank=refused))).cause == "nvme-path-permission"


def test_a_swap_file_cut_short_by_a_full_disk() -> None:
    """DeepSpeed does not look at what a write says; the next read stops at its own assertion."""
    output = "/mnt/n/zero_stage_3/optimizer/rank0/1.tensor.swp: file_offset + buffer nbytes > file bytes 4194304 > 1048576\npython: deepspeed_py_io_handle.cpp:34: bool is_valid_bytes_to_read(const char*, int64_t, int64_t): Assertion `(file_offset + num_bytes_to_read) <= num_file_bytes' failed."
    finding = told(fallen("signal", signal="SIGABRT", output_tail=output))
    assert finding.cause == "nvme-disk-full"
    assert finding.remedy is not None
    assert "1048576 of 4194304" in finding.remedy.order


def test_a_run_that_left_nothing_to_go_by_still_says_how_it_ended() -> None:
    bare = h.smoke_run(outcome="exited", losses=(), ranks=(), launcher="torchrun")
    finding = told(h.smoke(bare))
    assert finding.cause == "smoke-fails"
    assert "ended in its start" in finding.message


@pytest.mark.parametrize("row", failures(), ids=lambda row: row["cause"])
def test_every_row_of_the_table_can_be_read(row: dict[str, Any]) -> None:
    assert row["how"] in ("run", "read", "report")
    groups = re.compile(row["pattern"].replace("{swap}", "/x")).groups
    for text in (row["order"], row.get("note", ""), *row.get("pip", ()), *row.get("type", ())):
        assert all(int(n) < groups for n in re.findall(r"\{(\d+)\}", text)), text
