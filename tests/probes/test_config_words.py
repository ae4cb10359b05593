"""What the patient's own DeepSpeed says of a config: fake ones here, which know a key of tomorrow, crash, or are old."""

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.facts import ConfigWords, Python, Snapshot, Unavailable
from dsdoctor.facts.snapshot import decode, encode
from dsdoctor.probes import patient
from dsdoctor.probes.system import System

PACKAGES = {
    "torch": "class version: cuda = None\nclass cuda:\n    is_available = staticmethod(lambda: False)\n    device_count = staticmethod(lambda: 0)\n__version__ = '2.13.0'",
    "hjson": "from json import load",
    "deepspeed": "__version__ = '0.30.0'",
    "deepspeed/accelerator": "def get_accelerator(): return None",
    "deepspeed/comm": "def get_rank(): return 0\ndef get_world_size(): return 1",
    "deepspeed/utils": "import logging; logger = logging.getLogger('DeepSpeed')",
    "deepspeed/runtime": "",
    "deepspeed/env_report": "def cli_main(): pass",
}  # fmt: skip
CONFIG = """
import deepspeed.comm as dist
from deepspeed.utils import logger
class Refused(Exception):
    def __init__(self, *errors): self.rows = errors
    def errors(self): return [dict(zip(("loc", "type", "msg"), row)) for row in self.rows]
class DeepSpeedConfig:
    def __init__(self, values):
        self.ranks = dist.get_world_size()
        if values.get("tomorrow"): pass
        zero = dict(**values["zero_optimization"]) if "zero_optimization" in values else {}
        if values.get("needs_zero") and not zero.get("stage"): raise AssertionError("needs_zero is for ZeRO only")
        if "typo" in zero: raise Refused((("typo",), "extra_forbidden", "Extra inputs are not permitted"))
        if values.get("old_name"): logger.warning("Config parameter old_name is deprecated use new_name instead")
        if values.get("crash"): import os, signal; os.kill(os.getpid(), signal.SIGSEGV)
        if values.get("hang"): import time; time.sleep(600)
        if not (values.get("train_batch_size") or values.get("train_micro_batch_size_per_gpu")):
            raise AssertionError("Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided")
        if values.get("a") and values.get("b"): raise ValueError("a and b exclude each other")
        if values.get("b") and values.get("train_batch_size", self.ranks) != self.ranks: raise AssertionError("batch %d" % self.ranks)
"""


def ask(folder: Path, ranks: int | None = None, *, fill: bool = True, **values: object) -> ConfigWords | Unavailable:
    for name, source in {**PACKAGES, "deepspeed/runtime/config": textwrap.dedent(CONFIG)}.items():
        (folder / "fake" / name).mkdir(parents=True)
        (folder / "fake" / name / "__init__.py").write_text(source)
    file = folder / "ds.json"
    file.write_text(json.dumps(values))
    system = System(env={**os.environ, "PYTHONPATH": str(folder / "fake")}, cwd=str(folder))
    person = Python(executable=sys.executable, chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr")
    limit_s = 5.0 if "hang" in values else 60.0
    return patient.probe(system, person, limit_s, patient.ConfigOrder(str(file), ranks, fill)).config_words


def told(words: ConfigWords | Unavailable) -> ConfigWords:
    assert isinstance(words, ConfigWords), words
    return words


def test_keys_that_it_asks_for_are_known_and_mistakes_have_their_place(tmp_path: Path) -> None:
    words = told(ask(tmp_path, tomorrow=1, zero_optimization={"typo": 1}, old_name=2, nobody=3, train_batch_size=1))
    assert words.version == "0.30.0"
    assert set(words.known) == {"tomorrow", "zero_optimization", "old_name", "train_batch_size"}
    assert [(w.key, w.kind) for w in words.words] == [
        ("zero_optimization.typo", "extra_forbidden"),
        ("old_name", "deprecated"),
    ]
    assert words.whole is None
    snapshot = Snapshot(tool_version="0", config_words=words)
    assert decode(encode(snapshot), "it") == snapshot


def test_sections_that_exclude_each_other(tmp_path: Path) -> None:
    words = told(ask(tmp_path, a=1, b=1, train_batch_size=1))
    assert words.words == ()
    assert words.whole == "ValueError: a and b exclude each other"


def test_a_section_that_looks_at_the_stage(tmp_path: Path) -> None:
    rest: dict[str, Any] = {"needs_zero": 1, "train_batch_size": 1}
    words = told(ask(tmp_path / "good", zero_optimization={"stage": 1}, **rest))
    assert (words.words, words.whole) == ((), None)
    lone = told(ask(tmp_path / "lone", **rest))
    assert [w.key for w in lone.words] == ["needs_zero"]
    sick = told(ask(tmp_path / "sick", zero_optimization={"stage": 1, "typo": 1}, **rest))
    assert [w.key for w in sick.words] == ["zero_optimization.typo"]


def test_auto_is_left_out_for_hugging_face_only(tmp_path: Path) -> None:
    words = told(ask(tmp_path / "hf", a="auto", b=1, train_batch_size="auto"))
    assert (words.whole, words.left_out) == (None, ("a", "train_batch_size"))
    assert told(ask(tmp_path / "alone", fill=False, a="auto", b=1)).whole is not None


@pytest.mark.parametrize(("ranks", "whole"), [(None, None), (8, None), (4, "AssertionError: batch 4")])
def test_the_number_of_ranks_counts_where_it_is_known(tmp_path: Path, ranks: int | None, whole: str | None) -> None:
    assert told(ask(tmp_path, ranks, b=1, train_batch_size=8)).whole == whole


def test_a_crash_costs_this_word_only(tmp_path: Path) -> None:
    words = ask(tmp_path, crash=1)
    assert isinstance(words, Unavailable)
    assert words.detail == "asking DeepSpeed about the config died of SIGSEGV"


def test_a_hang_is_ended(tmp_path: Path) -> None:
    words = ask(tmp_path, hang=1)
    assert isinstance(words, Unavailable)
    assert words.kind == "timed-out"
