"""From pasted text to sections, and what the checks say of them: what the text tells is judged, what it does not is no finding."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsdoctor.examination import diagnose, load_knowledge
from dsdoctor.facts import (
    AccelerateConfig,
    DeepSpeed,
    DeepSpeedLive,
    DsConfig,
    DsReport,
    Fact,
    Gpus,
    Host,
    Packages,
    Python,
    RunPlan,
    Snapshot,
    Toolkits,
    Torch,
    Unavailable,
)
from dsdoctor.facts.snapshot import SECTIONS
from dsdoctor.model import Report, Severity, Status
from dsdoctor.readers import accelerate_config, environment_text, kinds
from dsdoctor.request import Request

FIXTURES = Path(__file__).parents[2] / "fixtures"
HEALTHY = ("collect_env__2.11.0-h200.txt", "collect_env__2.13.0-cpu.txt", "accelerate-env__1.15.txt", "accelerate-env__1.15-h200.txt",
           "transformers-env__5.24.txt", "pip-list.txt", "pip-freeze.txt", "uv-pip-list.txt", "pip-freeze__h200.txt", "nvidia-smi__h200-x2.txt",
           "nvcc-version__13.0.txt", "accelerate-config__1.15.yaml")  # fmt: skip


def transcript(name: str) -> str:
    return (FIXTURES / "transcripts" / name).read_text()


def snapshot(text: str) -> Snapshot:
    facts = environment_text.facts_of(text, "pasted")
    silent = Unavailable(kind="not-examined", detail="a pasted text does not say")
    missing = {name: silent for name in SECTIONS.values() if name not in facts}
    return Snapshot(tool_version="0", origin="pasted", unavailable=missing).replace(**facts)


def judged(text: str) -> Report:
    return diagnose(snapshot(text), load_knowledge(), Request())


def errors(report: Report) -> dict[str, str]:
    """Code and message of all findings that are errors."""
    return {
        v.code: f.message for v in report.verdicts for f in v.findings if (f.severity or v.severity) == Severity.ERROR
    }


def torch(text: str) -> tuple[str, str | None] | None:
    found = environment_text.facts_of(text, "pasted").get("torch")
    return (found.version, found.cuda) if isinstance(found, Torch) else None


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_text_gives_no_error(name: str) -> None:
    report = judged(transcript(name))
    assert errors(report) == {}
    assert not [v.code for v in report.verdicts if v.status == Status.CRASHED]


def test_all_healthy_texts_in_one_paste() -> None:
    names = [name for name in HEALTHY if "h200" in name or name.startswith("nvcc")]
    assert errors(judged("\n\n".join(transcript(name) for name in names))) == {}


def test_torch_and_nvcc_of_different_releases() -> None:
    report = judged(transcript("collect_env__1.13.1-cu117.txt"))
    assert list(errors(report)) == ["CUDA004"]
    assert "13.0" in errors(report)["CUDA004"]
    assert "11.7" in errors(report)["CUDA004"]


def test_a_compiler_that_is_too_new_for_nvcc() -> None:
    text = "PyTorch version: 2.0.1+cu117\nCUDA used to build PyTorch: 11.7\nGCC version: (Debian 12.2.0-14) 12.2.0\nCUDA runtime version: 11.7.99\nGPU models and configuration: GPU 0: NVIDIA A100-SXM4-40GB\n"
    found = errors(judged(text))
    assert "CXX002" in found
    assert "12.2.0" in found["CXX002"]


@pytest.mark.parametrize("name", ["collect_env__2.11.0-h200.txt", "accelerate-env__1.15.txt", "pip-freeze.txt"])
def test_what_a_partial_list_leaves_out_is_not_missing(name: str) -> None:
    """collect_env names no DeepSpeed, pip freeze no setuptools: nobody knows whether they are there."""
    text = (
        transcript(name).replace("3.11.7", "3.12.1")
        + "\nRequirement already satisfied: numpy in /env/lib/python3.12/site-packages (2.4.6)\n"
    )
    status = {v.code: v.status for v in judged(text).verdicts}
    assert status["PY001"] == Status.UNKNOWN
    assert status["DS001"] in (Status.UNKNOWN, Status.PASSED)


def test_what_a_whole_list_leaves_out_is_missing() -> None:
    lines = transcript("pip-list.txt").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("deepspeed"))
    assert "DS001" in errors(judged(text))


def test_libaio_is_not_missing_because_nobody_looked() -> None:
    text = (
        transcript("collect_env__2.11.0-h200.txt")
        + '\n{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/nvme"}}}\n'
    )
    status = {v.code: v.status for v in judged(text).verdicts}
    assert status["OPS010"] == Status.UNKNOWN


def test_one_named_gpu_is_not_the_number_of_gpus() -> None:
    config = '\n{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2}}\n'
    findings = {v.code: v.findings for v in judged(transcript("accelerate-env__1.15-h200.txt") + config).verdicts}
    assert findings["CFG010"] == ()


def test_the_machine_in_collect_env() -> None:
    found = snapshot(transcript("collect_env__2.11.0-h200.txt"))
    assert isinstance(found.host, Host)
    assert (found.host.system, found.host.kernel, found.host.machine, found.host.libc) == (
        "linux",
        "6.1.0-generic",
        "x86_64",
        "glibc 2.39",
    )
    assert (found.host.distribution, found.host.distribution_version, found.host.package_manager) == (
        "ubuntu",
        "24.04.3",
        "apt",
    )
    assert isinstance(found.gpus, Gpus)
    assert ([gpu.name for gpu in found.gpus.devices], found.gpus.driver_version) == (["NVIDIA H200"], "580.159.04")
    assert found.cpu is not None
    assert (found.cpu.architecture, found.cpu.logical_cores) == ("X86_64", 16)
    assert isinstance(found.packages, Packages)
    assert found.packages.partial
    assert found.compilers is not None
    assert found.compilers.cxx is None, "which c++ torch would take is not told"


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35", ("linux", "x86_64", 2)),
        ("macOS-14.4-arm64-arm-64bit", ("darwin", "arm64", None)),
        ("Windows-10-10.0.22631-SP0", ("windows", "AMD64", None)),
        ("Linux-4.15.0-142-generic-x86_64-with-Ubuntu-18.04-bionic", ("linux", "x86_64", None)),
    ],
)
def test_other_systems(platform: str, expected: tuple[str, str, int | None]) -> None:
    text = f"- `Accelerate` version: 0.30.0\n- Platform: {platform}\n- Python version: 3.10.1\n"
    host = environment_text.facts_of(text, "pasted")["host"]
    assert isinstance(host, Host)
    assert (host.system, host.machine, host.wsl) == expected


def test_the_more_exact_text_counts_wherever_it_stands() -> None:
    freeze = "torch==2.4.0\nnumpy==1.26.0\ndeepspeed==0.14.0\n"
    report = (FIXTURES / "ds_report" / "0.19.8__accel-cuda.txt").read_text()
    for text in (freeze + report, report + freeze):
        assert torch(text) == ("2.13.0+cu130", "13.0")
        found = environment_text.facts_of(text, "pasted")["deepspeed"]
        assert isinstance(found, DeepSpeed)
        assert found.version == "0.19.8"


def test_of_equally_exact_texts_the_last_counts() -> None:
    first = "PyTorch version: 2.1.0+cu118\nCUDA used to build PyTorch: 11.8\n"
    second = "- `Accelerate` version: 1.0.0\n- PyTorch version (GPU?): 2.4.1+cu121 (True)\n"
    assert torch(first + second) == ("2.4.1+cu121", "12.1")
    assert torch(second + first) == ("2.1.0+cu118", "11.8")


def test_a_version_alone_does_not_tell_the_build() -> None:
    freeze = "torch==2.4.0\nnumpy==1.26.0\ndeepspeed==0.14.0\n"
    assert torch(freeze) is None
    assert torch(freeze + "Using /home/user/.cache/torch_extensions/py310_cu121 as PyTorch extensions root...\n") == (
        "2.4.0",
        "12.1",
    )
    assert torch(freeze + "nvidia-cuda-runtime-cu12==12.4.127\n") == ("2.4.0", "12.4")
    assert torch(
        "- `transformers` version: 4.46.0\n- PyTorch version (GPU?): 2.4.0 (True)\n\n"
        + freeze.replace("2.4.0", "2.4.0+cu118")
    ) == ("2.4.0+cu118", "11.8")


def test_what_a_training_log_says_in_passing() -> None:
    text = (
        "[2024-01-05 10:11:12,345] [INFO] [real_accelerator.py:191:get_accelerator] Setting ds_accelerator to cuda (auto detect)\n"
        "[2024-01-05 10:11:14,345] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.12.6, git-hash=unknown, git-branch=unknown\n"
        '  File "/home/user/miniconda3/envs/train/lib/python3.10/site-packages/deepspeed/runtime/engine.py", line 262, in __init__\n'
        "/usr/local/cuda-11.7/bin/nvcc --generate-dependencies-with-compile --dependency-output x.d -c x.cu -o x.o\n"
    )
    facts: dict[str, Fact] = environment_text.facts_of(text, "train.log")
    deepspeed, live, python, kits = (facts[name] for name in ("deepspeed", "deepspeed_live", "python", "toolkits"))
    assert isinstance(deepspeed, DeepSpeed)
    assert (deepspeed.version, deepspeed.from_text) == ("0.12.6", True)
    assert isinstance(live, DeepSpeedLive)
    assert live.accelerator == "cuda"
    assert isinstance(python, Python)
    assert (python.version, python.environment, python.prefix) == ("3.10", "conda", "/home/user/miniconda3/envs/train")
    assert isinstance(kits, Toolkits)
    assert kits.selected is not None
    assert (kits.selected.root, kits.selected.version) == ("/usr/local/cuda-11.7", "11.7")


def test_a_message_about_two_releases_of_cuda() -> None:
    """As torch 1.13 prints it, on two lines, and as torch 2.13 and DeepSpeed do."""
    freeze = "torch==2.1.2\nnumpy==1.26.0\ndeepspeed==0.14.0\n"
    for said in (
        "The detected CUDA version (11.7) mismatches the version that was used to compile\nPyTorch (12.1). Please make sure to use the same CUDA versions.\n",
        "RuntimeError: The detected CUDA version (11.7) mismatches the version that was used to compilePyTorch (12.1). Please make sure to use the same CUDA versions.\n",
        "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 11.7 does not match the version torch was compiled with 12.1, unable to compile\n",
    ):
        report = judged(freeze + said)
        assert "CUDA004" in errors(report), said
        assert "11.7" in errors(report)["CUDA004"]
        assert "12.1" in errors(report)["CUDA004"]


def test_a_version_without_a_build_is_a_package_still() -> None:
    found = environment_text.facts_of("- `transformers` version: 4.46.0\n- PyTorch version (GPU?): 2.4.0 (True)\n", "x")
    assert isinstance(found["packages"], Packages)
    assert (found["packages"].version("torch"), found["packages"].lacks("deepspeed")) == ("2.4.0", None)


def test_a_config_is_judged() -> None:
    text = 'my config:\n```json\n{\n  "train_batch_size": 8,\n  "zero_optimisation": {},\n  "zero_optimization": {"stage": 9}\n}\n```\n'
    found = snapshot(text).ds_config
    assert isinstance(found, DsConfig)
    assert any(v.code.startswith("CFG") and v.findings for v in judged(text).verdicts)


def test_a_traceback_of_training_is_no_ds_report_that_died() -> None:
    text = 'Traceback (most recent call last):\n  File "/env/lib/python3.10/site-packages/deepspeed/runtime/engine.py", line 1, in step\nRuntimeError: x\n'
    assert "ds_report" not in environment_text.facts_of(text, "train.log")


def test_a_ds_report_that_died_is_one_and_one_that_is_not_there_is_none() -> None:
    died = (FIXTURES / "ds_report" / "0.19.8__torch-missing.txt").read_text()
    report = environment_text.facts_of("Epoch 1\n" * 200 + died, "x")["ds_report"]
    assert isinstance(report, DsReport)
    assert report.fault_type == "ModuleNotFoundError"
    assert "ds_report" not in environment_text.facts_of("bash: ds_report: command not found\n", "x")


NAMES = (
    "collect_env__1.13.1-cu117.txt",
    "accelerate-env__1.15.txt",
    "transformers-env__5.24.txt",
    "accelerate-config__1.15.yaml",
)
PIECES = st.sampled_from([
    "PyTorch version: ", "CUDA used to build PyTorch: 12", "GPU 0: ", "- `Accelerate` version: 1", "[pip3] torch==", "torch==2.0", "{", "}", '"train_batch_size": ',
    "json = {\n", "# packages in environment at /x:\n", "Package Version\n------- ---\n", "- a=1=b\n", "deepspeed_config:\n", "  zero_stage: 3\n", "distributed_type: X\n",
    "num_machines: 'x\n", "- compute_environment: {'a'\n", "DeepSpeed general environment info:\n", "torch version ....", "/lib/python3.10/site-packages/", " -c /bin/nvcc ",
    "\n", "\r", "\x1b[0m", "> ", "```\n", "\ud800", "\x00", "9" * 40, ": ", "==", "é",
])  # fmt: skip


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=30).map("".join)))
@example("torch==9999999999\nb==1\nc==1\n")
@settings(max_examples=150, deadline=None)
def test_random_text_never_raises(text: str) -> None:
    environment_text.facts_of(text, "x")
    accelerate_config.parse(text, "x")
    assert kinds.kinds(text)


@given(st.sampled_from(NAMES), st.integers(0, 2000), st.integers(0, 2000))
@settings(max_examples=40, deadline=None)
def test_cut_text_never_raises(name: str, begin: int, length: int) -> None:
    text = transcript(name)[begin : begin + length]
    environment_text.facts_of(text, "x")
    accelerate_config.parse(text, "x")


@pytest.mark.parametrize(
    "wrap",
    [lambda t: t.replace("\n", "\r\n"), lambda t: "> " + t.replace("\n", "\n> "), lambda t: "```\n" + t + "\n```"],
)
@pytest.mark.parametrize("name", ["collect_env__2.11.0-h200.txt", "pip-list.txt", "accelerate-env__1.15-h200.txt"])
def test_how_it_was_pasted_does_not_matter(name: str, wrap: Callable[[str], str]) -> None:
    assert environment_text.facts_of(wrap(transcript(name)), "x") == environment_text.facts_of(transcript(name), "x")


def test_the_launcher_tells_how_many_ranks_the_run_has() -> None:
    """A config beside the log is judged with them."""
    log = (FIXTURES / "logs/four-ranks-on-two-gpus/log.txt").read_text()
    plan = environment_text.facts_of(log, "pasted")["run_plan"]
    assert isinstance(plan, RunPlan)
    assert (plan.nodes, plan.gpus_per_node, plan.ranks) == (1, 4, 4)
    config = '{"train_batch_size": 6, "train_micro_batch_size_per_gpu": 1}'
    assert "4 ranks (the launcher's nnodes=1, num_local_procs=4)" in errors(judged(f"{log}\n{config}\n"))["CFG010"]


def test_an_accelerate_config_is_judged() -> None:
    config = transcript("accelerate-config__1.15.yaml")
    asked = environment_text.facts_of(config, "pasted")["accelerate_config"]
    assert isinstance(asked, AccelerateConfig)
    assert asked.get("distributed_type") == "DEEPSPEED"
    nvme = config.replace("offload_optimizer_device: cpu", "offload_optimizer_device: nvme")
    assert "CFG047" in errors(judged(nvme))
