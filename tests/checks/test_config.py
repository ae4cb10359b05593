"""The family CFG: healthy configs are quiet, sick ones are found at their place, odd ones are not slandered."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.facts import DeepSpeed, DeepSpeedLive, DsConfig, Gpu, Gpus, Import, Unavailable
from dsdoctor.model import Severity, Status
from dsdoctor.readers import ds_config
from dsdoctor.testing import machine, verdict
from tests.checks.config_cases import CHECKS, H200S, NOW, OLD, config, found, judged, one

CONFIGS = Path(__file__).parents[2] / "fixtures" / "configs"
FUTURE = DeepSpeed(version="0.30.0", path="/opt/venv/lib/python3.11/site-packages/deepspeed")
T4 = Gpus(nvml="ok", devices=(Gpu(index=0, name="Tesla T4", compute_capability="7.5"),))
P100 = Gpus(nvml="ok", devices=(Gpu(index=0, name="Tesla P100", compute_capability="6.0"),))


@pytest.mark.parametrize("name", ["zero2_fp16.json", "zero3_nvme.json"])
def test_a_sound_config_is_quiet(name: str) -> None:
    sound = ds_config.read(str(CONFIGS / name))
    for check in CHECKS.values():
        result = verdict(check, machine(sound, NOW, H200S))
        advice = result.status is Status.FAILED and result.severity is Severity.INFO
        assert advice or result.status in (Status.PASSED, Status.NOT_APPLICABLE), (check.code, result)


def test_hugging_faces_auto_config_gets_one_note_only() -> None:
    auto = ds_config.read(str(CONFIGS / "huggingface_auto.json"))
    notes = [f for check in CHECKS.values() for f in verdict(check, machine(auto, NOW, H200S)).findings]
    assert [note.cause for note in notes] == ["auto-without-hf"]
    assert judged("CFG011", auto).severity is Severity.INFO


def test_without_a_config_no_check_applies() -> None:
    nothing = machine(ds_config=Unavailable(kind="not-asked", detail="no --config was given"))
    assert {verdict(check, nothing).status for check in CHECKS.values()} == {Status.NOT_APPLICABLE}


def test_every_mistake_of_a_bad_config_is_found() -> None:
    bad = ds_config.read(str(CONFIGS / "many_mistakes.json"))
    failed = {code for code in CHECKS if judged(code, bad, NOW).status is Status.FAILED}
    assert failed == {"CFG002", "CFG003", "CFG004", "CFG005", "CFG006", "CFG010", "CFG013", "CFG014"}


def test_a_broken_file_is_told_once_with_its_place() -> None:
    broken = ds_config.parse('{\n "a": [1\n}', "ds.json")
    finding = one("CFG001", broken)
    assert finding.cause == "config-syntax"
    assert finding.evidence[0].where == "ds.json:3:1"
    readers = [check for code, check in CHECKS.items() if code != "CFG001" and DsConfig in check.needs.values()]
    others = [verdict(check, machine(broken, NOW)).status for check in readers]
    assert set(others) == {Status.UNKNOWN, Status.NOT_APPLICABLE}  # the latter: of a framework that nobody named


def test_a_missing_file_is_another_cause() -> None:
    finding = one("CFG001", ds_config.read("no/such/file.json"))
    assert finding.cause == "config-path-not-found"
    assert "no such file" in finding.message


def test_duplicates_are_named_with_line() -> None:
    finding = one("CFG002", ds_config.parse('{"fp16": {"enabled": 1,\n "enabled": 2}}', "ds.json"))
    assert finding.subject == "fp16.enabled"
    assert "ds.json:2:2" in finding.message


def test_a_misspelt_section_is_named_with_the_real_one() -> None:
    finding = one("CFG003", config(zero_optimisation={"stage": 3}))
    assert finding.cause == "config-unknown-key-silent"
    assert "did you mean zero_optimization?" in finding.message
    assert finding.evidence[0].where == "ds.json:3:2"


def test_a_key_at_the_wrong_level_is_sent_home() -> None:
    assert "belongs at zero_optimization.stage" in one("CFG003", config(stage=3)).message
    inside = one("CFG004", config(zero_optimization={"stage": 3, "aio": {}}))
    assert inside.cause == "config-misplaced-section"


def test_sections_that_ignore_and_sections_that_refuse() -> None:
    refused = judged("CFG004", config(zero_optimization={"stage": 2, "overlapcomm": True}))
    assert refused.severity is Severity.ERROR
    assert "overlap_comm" in refused.findings[0].message
    ignored = judged("CFG004", config(aio={"queue_dept": 8}))
    assert ignored.severity is Severity.WARNING
    assert not found("CFG004", config(optimizer={"type": "Adam", "params": {"anything": 1}}))


def test_strangers_to_a_newer_deepspeed_are_not_judged() -> None:
    for code, sick in (("CFG003", config(brand_new=1)), ("CFG004", config(fp16={"brand_new": 1}))):
        result = judged(code, sick, FUTURE)
        assert result.status is Status.UNKNOWN
        assert "newer than the table" in (result.reason or "")


@pytest.mark.parametrize(
    ("values", "cause", "severity"),
    [
        ({"train_batch_size": "8"}, "config-number-as-string", Severity.ERROR),
        ({"train_batch_size": "many"}, "config-wrong-type", Severity.ERROR),
        ({"wall_clock_breakdown": "false"}, "config-bool-as-string", Severity.ERROR),
        ({"bf16": {"enabled": "true"}}, "config-bool-as-string", Severity.WARNING),
        ({"zero_optimization": {"stage": "2"}}, "config-number-as-string", Severity.WARNING),
        ({"zero_optimization": {"reduce_bucket_size": "5e8"}}, "config-sci-notation-string", Severity.ERROR),
        ({"zero_optimization": {"reduce_bucket_size": 5.5}}, "config-wrong-type", Severity.ERROR),
        ({"zero_optimization": {"offload_optimizer": True}}, "config-wrong-type", Severity.ERROR),
        ({"zero_optimization": {"reduce_bucket_size": True}}, "config-wrong-type", Severity.WARNING),
        ({"fp16": True}, "config-wrong-type", Severity.ERROR),
        ({"fp16": None}, "config-wrong-type", Severity.ERROR),
    ],
)
def test_wrong_types(values: dict[str, Any], cause: str, severity: Severity) -> None:
    finding = one("CFG005", config(**values))
    assert (finding.cause, finding.severity) == (cause, severity)


@pytest.mark.parametrize(
    "values",
    [
        {"train_batch_size": 8.0},
        {"aio": None},
        {"zero_optimization": {"stage": 2, "offload_optimizer": None}},
        {"zero_optimization": {"reduce_bucket_size": 5e8}},
        {"gradient_clipping": 1},
        {"steps_per_print": None},
        {"optimizer": {"type": "AdamW", "params": {"lr": "1e-4"}}},
    ],
)
def test_types_that_deepspeed_takes_are_quiet(values: dict[str, Any]) -> None:
    assert found("CFG005", config(**values)) == []


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"zero_optimization": {"stage": 4}}, "one of 0, 1, 2, 3"),
        ({"zero_optimization": {"stage": 3, "offload_param": {"device": "CPU"}}}, "one of cpu, none, nvme"),
        ({"train_micro_batch_size_per_gpu": 0}, "at least 1"),
        ({"zero_optimization": {"reduce_bucket_size": 0}}, "above 0"),
        ({"communication_data_type": "fp8"}, "one of fp32, fp16, bf16"),
    ],
)
def test_values_out_of_range(values: dict[str, Any], says: str) -> None:
    assert says in one("CFG006", config(**values)).message


def test_letter_case_is_free_where_deepspeed_frees_it() -> None:
    assert not found("CFG006", config(communication_data_type="BF16", checkpoint={"tag_validation": "Warn"}))


def test_offload_below_its_stage() -> None:
    offload = {"stage": 2, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"}}
    assert one("CFG007", config(zero_optimization=offload)).cause == "offload-param-needs-stage3"
    assert one("CFG007", config(zero_optimization={"offload_optimizer": {"device": "cpu"}})).cause == "config-no-effect"
    assert not found("CFG007", config(zero_optimization={"stage": 0, "offload_param": {"device": "none"}}))


def test_nvme_without_a_path_and_below_stage_3() -> None:
    lost = one("CFG008", config(zero_optimization={"stage": 3, "offload_param": {"device": "nvme"}}))
    assert lost.cause == "nvme-path-missing"
    low = {"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/mnt/nvme"}}
    assert one("CFG008", config(zero_optimization=low)).cause == "config-no-effect"
    assert judged("CFG008", config()).status is Status.NOT_APPLICABLE


def test_both_precisions() -> None:
    assert one("CFG009", config(fp16={"enabled": True}, bf16={"enabled": "true"})).cause == "fp16-bf16-both"
    assert not found("CFG009", config(fp16={"enabled": "auto"}, bf16={"enabled": "auto"}))
    assert not found("CFG009", config(fp16={"enabled": True}, bf16={"enabled": False}))


@pytest.mark.parametrize(
    ("batch", "micro", "steps", "says"),
    [
        (8, 3, None, "8 is no multiple of 3"),
        (32, 5, 4, "32 is no multiple of 5 x 4"),
        (None, None, 4, "neither train_batch_size nor"),
        (64, 4, 4, "x 8 ranks (this machine has 8 GPUs); it would fit 4 ranks"),
        (64, 4, 2, None),
        (64, None, None, None),
        (None, 4, 2, None),
        ("auto", "auto", "auto", None),
    ],
)
def test_the_batch_equation(batch: Any, micro: Any, steps: Any, says: str | None) -> None:
    names = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
    given = {k: v for k, v in zip(names, (batch, micro, steps), strict=True) if v is not None}
    sizes = ds_config.parse(json.dumps(given or {"fp16": {}}), "ds.json")
    messages = [f.message for f in found("CFG010", sizes, H200S)]
    assert len(messages) == (says is not None)
    assert says is None or says in messages[0]


def test_tensor_parallel_ranks_share_a_batch() -> None:
    sizes = {"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
    assert found("CFG010", config(**sizes), H200S)
    assert not found("CFG010", config(**sizes, tensor_parallel={"autotp_size": 2}), H200S)


def test_auto_where_nobody_fills_it_in() -> None:
    finding = one("CFG011", config(zero_optimization={"stage": 3, "sub_group_size": "auto"}))
    assert (finding.cause, finding.severity) == ("auto-unsupported-key", Severity.WARNING)
    assert not found("CFG011", config(pipeline={"stages": "auto"}))


def test_precision_and_compute_capability() -> None:
    assert "compute capability 7.5, bf16 needs 8.0" in one("CFG012", config(bf16={"enabled": True}), T4).message
    assert one("CFG012", config(fp16={"enabled": True}), P100).cause == "fp16-unsupported-gpu"
    assert not found("CFG012", config(fp16={"enabled": True}), T4)
    assert judged("CFG012", config(bf16={"enabled": True})).status is Status.UNKNOWN
    none_here = Gpus(nvml="library-missing")
    assert judged("CFG012", config(bf16={"enabled": True}), none_here).status is Status.NOT_APPLICABLE
    cpu = DeepSpeedLive(imported=Import(outcome="ok"), accelerator="cpu", bf16=True, fp16=False)
    assert "cpu accelerator says that it has no fp16" in one("CFG012", config(fp16={"enabled": True}), cpu).message


def test_removed_keys_stop_only_the_release_that_removed_them() -> None:
    old_key = config(elasticity={"enabled": False})
    assert one("CFG013", old_key, NOW).severity is Severity.ERROR
    assert one("CFG013", old_key).severity is Severity.WARNING
    assert not found("CFG013", old_key, OLD)
    assert (
        "use offload_optimizer"
        in one("CFG013", config(zero_optimization={"stage": 2, "cpu_offload": True}), NOW).message
    )


def test_optimizer_and_scheduler_names() -> None:
    assert "AdmaW" in one("CFG014", config(optimizer={"type": "AdmaW"})).message
    assert "removed in 0.19.8" in one("CFG014", config(optimizer={"type": "OneBitAdam"}), NOW).message
    assert one("CFG014", config(scheduler={"type": "warmuplr"})).subject == "scheduler.type"
    assert not found("CFG014", config(optimizer={"type": "adamw"}, scheduler={"type": "CosineAnnealingLR"}))
    assert not found("CFG014", config(optimizer={"type": "RMSprop"}))
    assert found("CFG014", config(optimizer={"type": "OneBitAdam"}), NOW)
    assert not found("CFG014", config(optimizer={"type": "OneBitAdam"}), OLD)


def test_a_key_newer_than_the_installed_release() -> None:
    finding = one("CFG015", config(torch_autocast={"enabled": True}, managed_gradient_accumulation=True), DeepSpeed(
        version="0.18.9", path="/opt/venv/deepspeed"
    ))  # fmt: skip
    assert "exists since DeepSpeed 0.19.4; here is 0.18.9" in finding.message


def test_hjson_is_noted_for_hugging_face() -> None:
    loose = ds_config.read(str(CONFIGS / "hjson_loose.json"))
    assert judged("CFG016", loose).severity is Severity.INFO
    assert one("CFG016", loose).cause == "config-syntax"


def test_settings_without_effect() -> None:
    idle = config(
        zero_optimization={"stage": 2, "stage3_max_live_parameters": 1},
        aio={"block_size": 1},
        fp16={"enabled": True, "loss_scale": 128, "hysteresis": 2},
    )
    subjects = [f.subject for f in found("CFG017", idle)]
    assert subjects == ["aio", "zero_optimization.stage3_max_live_parameters", "fp16.hysteresis"]


def test_no_value_makes_a_check_crash() -> None:
    odd: list[Any] = [
        None,
        True,
        0,
        -1.5,
        "x",
        "auto",
        [],
        [1],
        {},
        {"device": 7, "stage": [], "enabled": {}, "params": 0},
    ]
    keys = [*json.loads((CONFIGS / "zero3_nvme.json").read_text()), "fp16", "optimizer", "scheduler", "pipeline", "aio"]
    for key in keys:
        for value in odd:
            for check in CHECKS.values():
                result = verdict(check, machine(config(**{key: value}), NOW, H200S))
                assert result.status is not Status.CRASHED, (check.code, key, value, result.reason)


def test_text_of_the_file_cannot_reach_the_terminal_raw() -> None:
    evil = ds_config.parse(json.dumps({"\x1b[2Jzero": "\x1b[31m", "fp16": {"\x1b]0;x\x07": 1}}), "ds.json")
    for check in CHECKS.values():
        assert "\x1b" not in "".join(f.message for f in verdict(check, machine(evil, NOW)).findings)
