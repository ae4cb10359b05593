"""What kind of text something is, by content."""

from pathlib import Path

import pytest

from dsdoctor.readers import kinds

FIXTURES = Path(__file__).parents[2] / "fixtures"
OF = {
    "transcripts/collect_env__2.13.0-cpu.txt": ("collect-env",),
    "transcripts/collect_env__1.13.1-cu117.txt": ("collect-env",),
    "transcripts/accelerate-env__1.15-h200.txt": ("accelerate-env",),
    "transcripts/accelerate-env__1.15.txt": ("accelerate-env", "accelerate-config"),
    "transcripts/accelerate-config__1.15.yaml": ("accelerate-config",),
    "transcripts/transformers-env__5.24.txt": ("transformers-env",),
    "transcripts/pip-list.txt": ("package-list",),
    "transcripts/pip-freeze.txt": ("package-list",),
    "transcripts/uv-pip-list.txt": ("package-list",),
    "transcripts/nvidia-smi__h200.txt": ("nvidia-smi",),
    "transcripts/nvidia-smi-q__h200.txt": ("nvidia-smi",),
    "transcripts/nvidia-smi-topo__h200-x2.txt": ("nvidia-smi",),
    "transcripts/nvidia-smi__absent.txt": ("nvidia-smi",),
    "transcripts/nvcc-version__13.0.txt": ("nvcc",),
    "ds_report/0.19.8__accel-cuda.txt": ("ds_report",),
    "ds_report/0.9.5__plain.txt": ("ds_report",),
}


def read(name: str) -> str:
    return (FIXTURES / name).read_text(errors="replace")


@pytest.mark.parametrize("name", OF)
def test_recordings(name: str) -> None:
    assert set(OF[name]) == set(kinds.kinds(read(name)))


@pytest.mark.parametrize("name", OF)
def test_a_scanner_meets_a_landmark_of_each(name: str) -> None:
    """The engine looks at one line at a time."""
    lines = read(name).splitlines()
    seen = {mark.kind for line in lines for mark in kinds.landmarks if mark.on(line)}
    assert set(OF[name]) <= seen


@pytest.mark.parametrize(
    "line",
    [
        "[2024-01-05 10:11:14,345] [INFO] [logging.py:96:log_dist] [Rank 0] DeepSpeed info: version=0.12.6, git-hash=unknown, git-branch=unknown",
        "Using /home/user/.cache/torch_extensions/py310_cu121 as PyTorch extensions root...",
        "RuntimeError: The detected CUDA version (11.7) mismatches the version that was used to compile",
        "[2024-01-05 10:11:12,345] [INFO] [config.py:974:print_user_config]   json = {",
        "# packages in environment at /opt/conda/envs/train:",
    ],
)
def test_lines_of_a_log_that_tell_of_the_environment_are_landmarks(line: str) -> None:
    assert any(mark.on(line) for mark in kinds.landmarks)


def test_several_in_one_paste_in_their_order() -> None:
    text = "\n".join(
        read(f"transcripts/{name}")
        for name in ("nvcc-version__13.0.txt", "pip-list.txt", "collect_env__2.13.0-cpu.txt")
    )
    assert kinds.kinds(text) == ("nvcc", "package-list", "collect-env")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Traceback (most recent call last):\n  File", "training-log"),
        ("[2024-01-05 10:11:12,345] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 1", "training-log"),
        ("  3%|2         | 12/400 [00:10<05:00,  1.29it/s]", "training-log"),
        ("FAILED: multi_tensor_adam.cuda.o", "build-log"),
        ("Collecting deepspeed==0.9.5", "build-log"),
        ("[12345.678] Out of memory: Killed process 4242 (python) total-vm:1kB", "kernel-log"),
        ("node1:77:99 [0] NCCL INFO Bootstrap : Using eth0", "nccl-debug"),
        ('{"zero_optimization": {"stage": 2}}', "ds_config"),
        (
            "# packages in environment at /opt/conda:\n#\n# Name Version Build Channel\nnumpy 1.26 py310_0\n",
            "conda-list",
        ),
        ("it does not work, please help", "text"),
    ],
)
def test_short_texts(text: str, kind: str) -> None:
    assert kinds.kinds(text) == (kind,)


def test_one_pin_or_one_key_is_no_list_and_no_config() -> None:
    assert kinds.kinds("torch==2.1.0\n") == ("text",)
    assert kinds.kinds("distributed_type: NO\n") == ("text",)
