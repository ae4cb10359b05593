"""A ds_config in the middle of another text."""

from dsdoctor.readers import config_in_text

ISSUE = """My ds_config.json:

```json
{
  "train_batch_size": 32,
  "zero_optimization": {
    "stage": 3
  }
}
```
It hangs.
"""
PRINTED = """[2024-01-05 10:11:12,345] [INFO] [config.py:988:print]   zero_enabled ................. True
[2024-01-05 10:11:12,345] [INFO] [config.py:974:print_user_config]   json = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {
        "stage": 2
    },
    "bf16": {
        "enabled": true
    }
}
{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}
"""


def test_in_an_issue() -> None:
    config = config_in_text.parse(ISSUE, "issue.md")
    assert config is not None
    assert (config.get("zero_optimization.stage"), config.get("train_batch_size")) == (3, 32)
    assert config.where("zero_optimization.stage") == "issue.md:7:5"


def test_as_deepspeed_prints_it() -> None:
    config = config_in_text.parse(PRINTED, "train.log")
    assert config is not None
    assert (config.get("zero_optimization.stage"), config.get("bf16.enabled")) == (2, True)
    assert config.where("bf16") == "train.log:7:5"


def test_behind_the_prefix_of_a_rank() -> None:
    for prefix in ("[rank0]: ", "worker-1: ", "\x1b[36m[0]:\x1b[0m "):
        config = config_in_text.parse(prefix + PRINTED.replace("\n", "\r\n" + prefix), "train.log")
        assert config is not None, prefix
        assert config.get("zero_optimization.stage") == 2


def test_the_last_one_counts() -> None:
    config = config_in_text.parse(ISSUE + PRINTED, "x")
    assert config is not None
    assert config.get("zero_optimization.stage") == 2


def test_python_source_and_other_objects_are_none() -> None:
    assert config_in_text.parse('ds_config = {\n "train_batch_size": 8,\n "fp16": {"enabled": True}\n}\n', "x") is None
    assert config_in_text.parse('{\n "train_batch_size": 8,\n "fp16": {"enabled": True}\n}\n', "x") is None
    assert config_in_text.parse('{"loss": 1.0, "step": 3}\n', "x") is None
    assert config_in_text.parse("{'zero_optimization': {'stage': 3}}\n", "x") is None


def test_a_file_that_is_broken_says_where() -> None:
    config = config_in_text.parse('{\n  "train_batch_size": 8,\n  "zero_optimization": {\n    "stage": 3\n', "ds.json")
    assert config is not None
    assert config.problem is not None
    assert "never closed" in config.problem
