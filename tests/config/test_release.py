"""Which DeepSpeed a config is judged for, and what that changes."""

from pathlib import Path

import pytest
from dsdoctor_checks.config_keys import GONE, KEYS

from dsdoctor import testing
from dsdoctor.config.release import BESIDE, beside, said, with_release
from dsdoctor.config_examination import look
from dsdoctor.facts import DeepSpeed, Snapshot
from dsdoctor.model import Report, Severity
from dsdoctor.request import ExaminationError, Request

BLANK = Snapshot(tool_version="0")
FILE = """{
  "train_micro_batch_size_per_gpu": 1,
  "elasticity": {"enabled": false},
  "torch_autocast": {"enabled": false},
  "seq_parallel_comm_data_type": "fp32",
  "zero_optimization": {"stage": 2, "zenflow": null, "mics_shard_size": 4}
}"""


def judged(folder: Path, release: str | None) -> Report:
    (folder / "ds.json").write_text(FILE)
    return look(Request(config=str(folder / "ds.json")), release).report


def told(report: Report, code: str) -> dict[str, Severity]:
    (verdict,) = [v for v in report.verdicts if v.code == code]
    return {f.subject or "": f.severity or verdict.severity for f in verdict.findings}


ERROR, WARNING = Severity.ERROR, Severity.WARNING


@pytest.mark.parametrize(
    ("release", "gone", "early"),
    [
        ("0.8.3", {}, {"torch_autocast", "seq_parallel_comm_data_type", "zero_optimization.zenflow", "zero_optimization.mics_shard_size", "torch_autocast.enabled"}),
        ("0.14.0", {}, {"torch_autocast", "torch_autocast.enabled", "zero_optimization.zenflow"}),
        ("v0.17.2", {"seq_parallel_comm_data_type": WARNING}, {"zero_optimization.zenflow"}),
        ("0.19.7+abc", {"seq_parallel_comm_data_type": WARNING, "zero_optimization.mics_shard_size": ERROR}, set()),
        ("0.19.8", {"seq_parallel_comm_data_type": WARNING, "zero_optimization.mics_shard_size": ERROR, "elasticity": ERROR}, set()),
    ],
)  # fmt: skip
def test_a_file_is_judged_for_the_release_that_is_named(
    tmp_path: Path, release: str, gone: dict[str, Severity], early: set[str]
) -> None:
    report = judged(tmp_path, release)
    assert told(report, "CFG013") == gone
    assert set(told(report, "CFG015")) == early
    assert report.facts.deepspeed is not None
    assert said(report.facts) == f"DeepSpeed {release.removeprefix('v')} (--deepspeed)"


def test_a_release_of_tomorrow_has_no_strangers(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"train_micro_batch_size_per_gpu": 1, "brand_new": 1}')
    report = look(Request(config=str(tmp_path / "ds.json")), "9.0").report
    (verdict,) = [v for v in report.verdicts if v.code == "CFG003"]
    assert "newer than the table" in (verdict.reason or "")


@pytest.mark.parametrize("odd", ["", "latest", "0", "1..2", "0.19.8; rm", "\x1b[31m0.1", "0." + "9" * 99])
def test_what_is_no_version_gets_one_sentence(odd: str) -> None:
    with pytest.raises(ExaminationError, match="is no version: give a release such as") as told:
        with_release(BLANK, odd)
    assert "\x1b" not in str(told.value)
    assert told.value.exit_code == 2


def test_the_one_beside_dsdoctor_counts_when_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "deepspeed-0.18.2.dist-info").mkdir()
    (tmp_path / "deepspeed_kernels-0.1.dist-info").mkdir()
    assert beside(["/no/such/folder", str(tmp_path)]) == "0.18.2"
    assert beside([]) is None
    assert said(BLANK) == "the newest DeepSpeed that dsdoctor knows"
    assert said(BLANK.replace(deepspeed=DeepSpeed(version="0.18.2", path=BESIDE))) == "DeepSpeed 0.18.2 (installed beside dsdoctor)"  # fmt: skip


def test_a_recorded_machine_has_its_own(tmp_path: Path) -> None:
    recorded = testing.machine(DeepSpeed(version="0.15.0", path="/site-packages/deepspeed"))
    assert with_release(recorded, None) == recorded


def test_every_key_has_the_release_that_brought_it() -> None:
    """Without it a key could not be judged for an older release."""
    assert {key for key, row in {**KEYS, **GONE}.items() if "since" not in row} == set()


def test_a_model_beside_the_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}}')
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 128}')
    report = look(Request(config=str(tmp_path / "ds.json"), model=str(tmp_path)), None).report
    assert report.facts.model_config is not None
    assert report.facts.model_config.hidden == 128
    (verdict,) = [v for v in report.verdicts if v.code == "CFG063"]
    assert "reduce_bucket_size = 16384" in verdict.findings[0].message
