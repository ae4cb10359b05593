"""What the engine is told: causes that read well, purposes that are guessed with a reason, platforms, capabilities."""

import pytest
from dsdoctor_checks import knowledge, op_specs, tables
from dsdoctor_checks.capabilities import CAPABILITIES

from dsdoctor import healthy as h
from dsdoctor.facts import Fact, Hostfile, Snapshot
from dsdoctor.knowledge import LAYERS, CapabilitySpec
from dsdoctor.model import Proof

CPU_TORCH = h.torch(version="2.13.0+cpu", cuda=None, nccl=None)
NO_KITS = h.toolkits(found=(), chosen=None, chosen_by=None, nvcc_on_path=None)
CPU_LIVE = h.deepspeed_live(accelerator="cpu", communication_backend="gloo")
CAUSES = knowledge.causes()


def without_purpose(*sections: Fact) -> Snapshot:
    return h.healthy(*sections).replace(purpose=None)


def ci_machine() -> Snapshot:
    sections = (CPU_TORCH, NO_KITS, h.no_gpus(), CPU_LIVE, h.ds_report(accelerator="cpu"))
    snapshot = without_purpose(*sections)
    return snapshot.replace(purpose=knowledge.guess_purpose(snapshot))


def test_every_cause_reads_as_a_title_not_as_a_slug() -> None:
    as_slug = [slug for slug, info in CAUSES.items() if info.title.lower().replace(" ", "-") == slug]
    ended = [slug for slug, info in CAUSES.items() if info.title.endswith(".") or len(info.title) > 70]
    assert (as_slug, ended) == ([], [])


def test_every_cause_has_a_layer_a_remedy_and_symptoms_that_exist() -> None:
    for slug, info in CAUSES.items():
        assert info.layer in LAYERS, slug
        assert info.remedy, slug
        assert set(info.explains) <= set(CAUSES) - {slug}, slug


@pytest.mark.parametrize(
    ("root", "symptom"),
    [
        ("package-files-damaged", "import-crashes"),
        ("container-no-gpu", "no-gpu-visible"),
        ("nvml-unavailable", "no-gpu-visible"),
        ("driver-too-old", "no-gpu-visible"),
        ("cuda-home-malformed", "cuda-home-without-nvcc"),
        ("torch-cuda-vs-nvcc-major", "skip-cuda-check-not-enough"),
        ("shm-too-small", "shm-no-space"),
    ],
)
def test_roots_explain_their_symptoms(root: str, symptom: str) -> None:
    assert symptom in CAUSES[root].explains


HOSTS = h.programs(hostfile=Hostfile(path="/job/hostfile", exists=True, hosts={"a": 8, "b": 8}))


@pytest.mark.parametrize(
    ("sections", "name", "reason"),
    [
        ((), "single-gpu", "one GPU"),
        ((h.gpus(8),), "multi-gpu", "8 GPUs"),
        ((HOSTS,), "multi-node", "2 hosts"),
        ((h.environment(SLURM_NNODES="4"),), "multi-node", "4 nodes"),
        ((h.environment(SLURM_NNODES="1"),), "single-gpu", "one GPU"),
        ((h.storage(h.place()),), "offload-nvme", "NVMe"),
        ((h.no_gpus(),), "builder", "nvcc"),
        ((h.no_gpus(), NO_KITS), "ci-cpu", "no NVIDIA GPU"),
        ((h.no_gpus(), CPU_TORCH), "ci-cpu", "no NVIDIA GPU"),
        ((h.no_gpus(pci_nvidia=1), CPU_TORCH), "single-gpu", "NVIDIA GPU or driver"),
        ((h.no_gpus(), h.environment(NVIDIA_VISIBLE_DEVICES="all")), "single-gpu", "NVIDIA_VISIBLE_DEVICES"),
        ((h.no_gpus(), h.host(hosted_on="colab")), "single-gpu", "notebook"),
    ],
)
def test_the_purpose_is_guessed_with_its_reason(sections: tuple[Fact, ...], name: str, reason: str) -> None:
    purpose = knowledge.guess_purpose(without_purpose(*sections))
    assert purpose.name == name
    assert reason in purpose.because
    assert purpose.guessed


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ((), ("Ubuntu 24.04.3", "1 x NVIDIA H200", "580.159.04")),
        ((h.no_gpus(),), ("no NVIDIA GPU", "gloo")),
        ((h.host(container="docker"),), ("in a container (docker)",)),
        ((h.host(wsl=2),), ("WSL 2", "never install a Linux driver")),
        ((h.host(wsl=1), h.no_gpus()), ("wsl --set-version",)),
        ((h.host(scheduler="slurm"), h.no_gpus()), ("login node", "srun")),
        (
            (h.host(system="darwin", machine="arm64", distribution_version="15.6"), h.no_gpus()),
            ("Apple silicon", "MPS"),
        ),
        ((h.host(system="windows"),), ("Windows", "wsl --install")),
        ((h.host(hosted_on="colab"), h.no_gpus()), ("Colab", "Change runtime type")),
        (
            (h.host(hosted_on="kaggle"), h.gpus(devices=(h.gpu(name="Tesla T4", compute_capability="7.5"),))),
            ("Kaggle", "Tesla T4", "fp16"),
        ),
    ],
)
def test_the_first_lines_name_the_platform(sections: tuple[Fact, ...], words: tuple[str, ...]) -> None:
    platform = knowledge.describe_platform(h.healthy(*sections))
    text = " ".join(filter(None, (platform.headline, platform.can, platform.cannot, platform.instead)))
    for word in words:
        assert word in text


def spec(name: str) -> CapabilitySpec:
    return next(s for s in CAPABILITIES if s.name == name)


@pytest.mark.parametrize("name", ["zero1", "zero2", "zero3", "moe", "optimizer-offload-cpu"])
def test_training_needs_a_gpu_or_a_compiler(name: str) -> None:
    assert "gpu" in spec(name).requires(h.healthy())
    on_cpu = spec(name).requires(ci_machine())
    assert "cpp-build" in on_cpu  # deepspeed_shm_comm is built before the first step
    assert "gpu" not in on_cpu


def test_fused_adam_is_a_cuda_op_on_a_gpu_only() -> None:
    assert spec("fused-adam").requires(h.healthy()) == ("import", "gpu", "op:fused_adam")
    assert spec("fused-adam").requires(ci_machine()) == ("import", "op:fused_adam")


@pytest.mark.parametrize(
    ("name", "capability", "reason"),
    [
        ("fp8", "8.6", "8.9"),
        ("fp8", "8.9", None),
        ("bf16", "7.5", "8.0"),
        ("bf16", "8.0", None),
        ("fp16", "6.1", "7.0"),
    ],
)
def test_precision_follows_the_hardware(name: str, capability: str, reason: str | None) -> None:
    snapshot = h.healthy(h.gpus(devices=(h.gpu(compute_capability=capability),)))
    said = spec(name).applies(snapshot)
    assert (said is None) if reason is None else (reason in (said or ""))


def test_what_a_machine_has_not_does_not_apply() -> None:
    assert spec("several-gpus").applies(h.healthy()) == "there is one GPU"
    assert spec("several-gpus").applies(h.healthy(h.gpus(2))) is None
    assert "bf16" in (spec("fp16").applies(ci_machine()) or "")
    assert "hostfile" in (spec("several-nodes").applies(h.healthy()) or "")
    assert spec("several-nodes").applies(h.healthy(HOSTS)) is None
    assert "not installed" in (spec("accelerate").applies(h.healthy(h.packages({"accelerate": None}))) or "")


def test_nvme_offload_is_judged_without_a_named_place_and_needs_aio() -> None:
    assert spec("nvme-offload").applies(h.healthy()) is None
    assert "aio" in spec("nvme-offload").requires(h.healthy())


def test_a_smoke_run_proves_its_own_stage_only() -> None:
    ran = h.healthy(h.smoke(stage=2, dtype="bf16"))
    assert spec("zero2").proof(ran) is Proof.RAN
    assert spec("bf16").proof(ran) is Proof.RAN
    assert spec("zero3").proof(ran) is not Proof.RAN
    rising = h.healthy(h.smoke(stage=2, losses=(1.0, 2.0)))
    assert spec("zero2").proof(rising) is not Proof.RAN


def test_the_accelerator_is_deepspeeds_own_word_first() -> None:
    assert op_specs.accelerator(h.healthy(h.deepspeed_live(accelerator="cpu"))) == "cpu"
    silent = h.healthy(h.deepspeed_live(accelerator=None))
    assert op_specs.accelerator(silent) == "cuda"
    assert op_specs.accelerator(h.healthy(h.deepspeed_live(accelerator=None), CPU_TORCH)) == "cpu"


def test_a_machine_told_to_take_cuda_without_a_gpu_is_there_to_build() -> None:
    told = h.healthy(h.no_gpus(), h.environment(DS_ACCELERATOR="cuda"), h.toolkits(found=(), chosen=None))
    assert knowledge.guess_purpose(told).name == "builder"
    untold = h.healthy(h.no_gpus(), h.toolkits(found=(), chosen=None))
    assert knowledge.guess_purpose(untold).name == "ci-cpu"


@pytest.mark.parametrize("name", ["ds_config_keys", "ds_config_defaults"])
def test_a_table_that_is_read_row_by_row_says_what_the_whole_says(name: str) -> None:
    by_rows = {section: dict(rows) for section, rows in tables.Sections(name).items()}
    assert by_rows == tables.table(name)
    keys = tables.table("ds_config_keys")["keys"]
    also = tables.Sections("ds_config_keys")["keys"].having("also")
    assert also == {key: row["also"] for key, row in keys.items() if "also" in row}
    assert also
