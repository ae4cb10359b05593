"""`accelerate env` and `transformers env`: recordings, and short texts after the sources of older releases."""

from pathlib import Path

from dsdoctor.readers import framework_env
from dsdoctor.readers.told import Build

TRANSCRIPTS = Path(__file__).parents[2] / "fixtures" / "transcripts"
# accelerate/commands/env.py of 0.24.0.
ACCELERATE = """
- `Accelerate` version: 0.24.0
- Platform: Linux-5.15.0-88-generic-x86_64-with-glibc2.35
- Python version: 3.10.13
- Numpy version: 1.26.1
- PyTorch version (GPU?): 2.1.0+cu121 (True)
- PyTorch XPU available: False
- PyTorch NPU available: False
- System RAM: 125.78 GB
- GPU type: NVIDIA A100-SXM4-80GB
- `Accelerate` default config:
	Not found
"""
# transformers/commands/env.py of 4.46.0.
TRANSFORMERS = """
- `transformers` version: 4.46.0
- Platform: Linux-5.15.0-1034-aws-x86_64-with-glibc2.31
- Python version: 3.9.19
- Huggingface_hub version: 0.26.1
- Safetensors version: 0.4.5
- Accelerate version: 1.0.1
- Accelerate config: 	- compute_environment: LOCAL_MACHINE
	- distributed_type: DEEPSPEED
	- mixed_precision: bf16
- PyTorch version (GPU?): 2.4.1 (True)
- Tensorflow version (GPU?): not installed (NA)
- Using GPU in script?: <fill in>
- GPU type: NVIDIA H100 80GB HBM3
"""


def recording(name: str) -> str:
    return (TRANSCRIPTS / name).read_text()


def test_accelerate_with_a_config() -> None:
    (told,) = framework_env.parse(recording("accelerate-env__1.15.txt"))
    assert (told.torch, told.build, told.python, told.gpus) == ("2.13.0+cpu", Build("cpu"), "3.11.7", None)
    assert told.packages == {"accelerate": "1.15.0", "numpy": "2.4.6"}
    assert told.ram_bytes == round(23.54 * 2**30)


def test_accelerate_on_a_gpu() -> None:
    (told,) = framework_env.parse(recording("accelerate-env__1.15-h200.txt"))
    assert (told.torch, told.build, told.gpus, told.listed) == (
        "2.11.0+cu130",
        Build("cuda", "13.0"),
        {0: "NVIDIA H200"},
        False,
    )


def test_transformers() -> None:
    (told,) = framework_env.parse(recording("transformers-env__5.24.txt"))
    assert (told.torch, told.deepspeed, told.python) == ("2.13.0+cpu", "0.19.8", "3.11.7")
    assert told.packages["transformers"] == "5.24.0"
    assert told.packages["accelerate"] == "1.15.0"


def test_older_releases() -> None:
    first, second = framework_env.parse("> " + (ACCELERATE + TRANSFORMERS).replace("\n", "\r\n> "))
    assert (first.packages["accelerate"], first.torch, first.gpus) == (
        "0.24.0",
        "2.1.0+cu121",
        {0: "NVIDIA A100-SXM4-80GB"},
    )
    assert (second.packages["transformers"], second.torch, second.build) == ("4.46.0", "2.4.1", None)
    assert second.gpus == {0: "NVIDIA H100 80GB HBM3"}


def test_copied_from_a_page_that_shows_it() -> None:
    shown = "\n".join(line.removeprefix("- ").replace("`", "") for line in (ACCELERATE + TRANSFORMERS).splitlines())
    assert [(told.torch, told.gpus, told.ram_bytes) for told in framework_env.parse(shown)] == [
        (told.torch, told.gpus, told.ram_bytes) for told in framework_env.parse(ACCELERATE + TRANSFORMERS)
    ]


def test_what_is_not_installed_is_not_told() -> None:
    text = "- `transformers` version: 4.55.0\n- Accelerate version: not installed\n- DeepSpeed version: not installed\n- PyTorch version (accelerator?): not installed (NA)\n"
    (told,) = framework_env.parse(text)
    assert (told.packages, told.torch, told.deepspeed) == ({"transformers": "4.55.0"}, None, None)
    assert framework_env.parse("transformers 4.55\n- Platform: Linux") == ()
