"""Which ops there are by accelerator and release, what a build of each needs, and what a config asks for."""

from pathlib import Path
from typing import Any

import pytest
from dsdoctor_checks.op_specs import _SWITCHES, accelerator, needing, specs
from dsdoctor_checks.tables import table

from dsdoctor import healthy as h
from dsdoctor.facts import DsOp, DsReport, Fact, OpBuilder, Snapshot, Unavailable
from dsdoctor.knowledge import OpSpec
from dsdoctor.readers import ds_report as reader
from dsdoctor.testing import machine

STAND_INS = set(table("ops")["stand_in"])
CAPTURES = sorted((Path(__file__).parents[2] / "fixtures/ds_report").glob("*__*.txt"))
READ = [reader.parse(path.read_text("utf-8", errors="replace"), path.name) for path in CAPTURES]
WHOLE = [report for report in READ if report.complete and report.ops and report.deepspeed_version]
GONE = Unavailable(kind="not-examined", detail="--static")


def ops(snapshot: Snapshot) -> dict[str, OpSpec]:
    return {spec.name: spec for spec in specs(snapshot)}


def from_table(*sections: Fact) -> dict[str, OpSpec]:
    """The ops when neither builders nor a ds_report were asked."""
    return ops(h.healthy(*sections, op_builders=GONE, ds_report=GONE))


def wanted(values: dict[str, Any], *sections: Fact) -> dict[str, str]:
    found = from_table(h.ds_config(values), *sections)
    return {name: spec.wanted for name, spec in found.items() if spec.wanted is not None}


@pytest.mark.parametrize("report", WHOLE, ids=lambda r: Path(r.source).stem)
def test_the_table_has_exactly_the_ops_that_a_real_ds_report_lists(report: DsReport) -> None:
    live = h.deepspeed_live(accelerator=report.accelerator or "cuda")
    found = from_table(h.deepspeed(version=report.deepspeed_version), live)
    assert found.keys() == {op.name for op in report.ops} - STAND_INS


def test_there_are_reports_of_many_releases() -> None:
    assert len({report.deepspeed_version for report in WHOLE}) >= 12


def test_cpu_machines_have_other_ops_and_needs_than_cuda_machines() -> None:
    on_cpu = from_table(h.deepspeed_live(accelerator="cpu"))
    on_cuda = from_table()
    assert {"deepspeed_shm_comm", "fused_adam", "cpu_adam"} <= on_cpu.keys()
    assert "fused_lamb" not in on_cpu
    assert "deepspeed_shm_comm" not in on_cuda
    assert on_cpu["fused_adam"].needs == ("op", "cpp-build", "openmp")
    assert "cuda-build" in on_cuda["fused_adam"].needs
    assert "libcuda" in on_cuda["async_io"].needs
    assert "libcuda" not in on_cpu["async_io"].needs


def test_a_mac_compiles_cpu_adam_and_no_fused_adam() -> None:
    on_mps = from_table(h.deepspeed_live(accelerator="mps"))
    assert {name: spec.needs for name, spec in on_mps.items()} == {
        "cpu_adam": ("op", "cpp-build"),
        "fused_adam": ("op",),
    }


def test_older_releases_lack_the_newer_ops() -> None:
    for name, row in table("ops")["op"].items():
        if "since" in row and "cuda" in row["accelerators"]:
            assert name in from_table(h.deepspeed(version=row["since"]))
            major, minor, _ = row["since"].split(".")
            assert name not in from_table(h.deepspeed(version=f"{major}.{int(minor) - 1}.0"))


def test_an_op_that_went_away_and_came_back() -> None:
    assert "utils" in from_table(h.deepspeed(version="0.9.4"))
    assert "utils" not in from_table(h.deepspeed(version="0.14.5"))
    assert "utils" in from_table(h.deepspeed(version="0.17.1"))
    assert "sparse_attn" in from_table(h.deepspeed(version="0.19.6"))
    assert "sparse_attn" not in from_table(h.deepspeed(version="0.19.8"))


@pytest.mark.parametrize(("version", "cuda"), [("0.5.8", False), ("0.5.10", True), ("0.19.7", True), ("0.19.8", False)])
def test_cpu_adam_was_a_cuda_op_for_a_while(version: str, cuda: bool) -> None:
    needs = from_table(h.deepspeed(version=version))["cpu_adam"].needs
    assert ("cuda-build" in needs) is ("curand" in needs) is cuda


def test_a_newer_deepspeed_is_judged_by_its_builders_and_says_so() -> None:
    builders = h.op_builders(
        builders=(
            OpBuilder(name="fused_adam", builder="FusedAdamBuilder", cuda=True, libraries=("curand", "m")),
            OpBuilder(name="brand_new", builder="BrandNewBuilder", libraries=("aio",)),
        )
    )
    found = ops(h.healthy(h.deepspeed(version="0.20.0"), builders))
    assert found["fused_adam"].needs == ("op", "cuda-build", "curand")
    assert found["brand_new"].needs == ("op", "cpp-build", "libaio")
    for spec in found.values():
        assert "0.20.0" in str(spec.note)
        assert table("ops")["meta"]["deepspeed"] in str(spec.note)


def test_a_newer_deepspeed_whose_builders_were_not_asked_is_marked_too() -> None:
    found = from_table(h.deepspeed(version="0.20.0"))
    assert found
    assert all("0.20.0" in str(spec.note) for spec in found.values())


def test_an_op_that_is_not_in_the_table() -> None:
    builders = h.op_builders(builders=(OpBuilder(name="their_op", builder="TheirBuilder", cuda=True),))
    spec = ops(h.healthy(builders))["their_op"]
    assert spec.needs == ("op", "cuda-build")
    assert "not in dsdoctor's table" in str(spec.note)
    told = h.ds_report(ops=(DsOp(name="their_op", installed=False, compatible=True),))
    unasked = ops(h.healthy(told, op_builders=GONE))["their_op"]
    assert {"cpp-build", "cuda-build"} <= set(unasked.needs)


def test_known_ops_carry_no_note() -> None:
    assert [spec.note for spec in specs(h.healthy()) if spec.note] == []


def test_stand_ins_are_no_ops_and_hide_none() -> None:
    row = DsOp(name="deepspeed_not_implemented", installed=False, compatible=True)
    only = h.healthy(h.ds_report(ops=(row,)), h.deepspeed_live(accelerator="mps"), op_builders=GONE)
    assert ops(only).keys() == {"cpu_adam", "fused_adam"}


def test_a_ds_report_that_was_cut_off_hides_no_op() -> None:
    cut = h.ds_report(ops=h.ds_report().ops[:2])
    assert "quantizer" in ops(h.healthy(cut, op_builders=GONE))


def test_nothing_known_is_no_op() -> None:
    assert specs(machine()) == ()


def test_the_accelerator_that_deepspeed_was_told_to_take() -> None:
    told = h.environment(DS_ACCELERATOR="cpu")
    assert accelerator(h.healthy(told, deepspeed_live=GONE)) == "cpu"
    assert accelerator(h.healthy(deepspeed_live=GONE)) == "cuda"
    assert accelerator(h.healthy(h.no_gpus(), deepspeed_live=GONE)) == "cpu"
    assert accelerator(h.healthy(h.torch(cuda=None), deepspeed_live=GONE)) == "cpu"
    assert accelerator(h.healthy(told)) == "cuda", "the live probe saw what DeepSpeed really took"
    assert accelerator(machine(h.ds_report(accelerator="cpu"))) == "cpu"
    assert accelerator(machine()) is None


def test_the_needing_ops_of_an_ability() -> None:
    assert needing("cufile") == ["gds"]
    assert set(needing("libcuda")) == {"async_io", "gds"}
    assert "sparse_attn" not in needing("cuda-build")


@pytest.mark.parametrize("key", sorted(_SWITCHES))
def test_a_switch_of_the_config_asks_for_its_op(key: str) -> None:
    def nested(value: Any) -> dict[str, Any]:
        for part in reversed(key.split(".")):
            value = {part: value}
        return value  # type: ignore[no-any-return]

    assert key in wanted(nested(True))[_SWITCHES[key]]
    assert _SWITCHES[key] not in wanted(nested(False))


@pytest.mark.parametrize(
    ("optimizer", "offload", "op"),
    [
        ("Adam", None, "fused_adam"),
        ("AdamW", None, "fused_adam"),
        ("Lion", None, "fused_lion"),
        ("Lamb", None, "fused_lamb"),
        ("Adagrad", None, None),
        ("OneBitAdam", None, None),
        (None, None, None),
        ("Adam", "none", "fused_adam"),
        ("adamw", "cpu", "cpu_adam"),
        ("Lion", "cpu", "cpu_lion"),
        ("Adagrad", "cpu", "cpu_adagrad"),
        ("Adam", "nvme", "cpu_adam"),
        (None, "cpu", "cpu_adam"),
        ("Lamb", "cpu", "fused_lamb"),
        ("SGD", "cpu", None),
    ],
)
def test_optimizer_and_offload_ask_for_one_op(optimizer: str | None, offload: str | None, op: str | None) -> None:
    values: dict[str, Any] = {"zero_optimization": {"stage": 2}}
    if optimizer:
        values["optimizer"] = {"type": optimizer}
    if offload:
        values["zero_optimization"]["offload_optimizer"] = {"device": offload}
    asked = {name for name in wanted(values) if name.startswith(("cpu_", "fused_"))}
    assert asked == ({op} if op else set())


@pytest.mark.parametrize("offload", [None, "cpu"])
def test_torch_adam_needs_no_op(offload: str | None) -> None:
    values: dict[str, Any] = {"optimizer": {"type": "Adam", "params": {"torch_adam": True}}}
    if offload:
        values["zero_optimization"] = {"offload_optimizer": {"device": offload}}
    assert wanted(values) == {}


@pytest.mark.parametrize("part", ["offload_optimizer", "offload_param"])
def test_nvme_asks_for_async_io_and_says_where(part: str) -> None:
    asked = wanted({"zero_optimization": {"stage": 3, part: {"device": "nvme"}}})
    assert {"async_io", "pin_memory"} <= asked.keys()
    assert f"{part}.device = nvme" in asked["async_io"]
    assert "ds_config.json:" in asked["async_io"]


def test_without_a_config_the_first_training_run_asks() -> None:
    assert {s.name for s in specs(h.healthy()) if s.wanted} == {"fused_adam", "cpu_adam"}
    named = h.healthy(h.storage(h.place()))
    assert {"async_io", "pin_memory"} <= {s.name for s in specs(named) if s.wanted}
    broken = h.ds_config({}, readable=False, problem="line 3: Expecting ','")
    assert {s.name for s in specs(h.healthy(broken)) if s.wanted} == {"fused_adam", "cpu_adam"}


def test_the_cpu_accelerator_always_asks_for_its_communication() -> None:
    assert "deepspeed_shm_comm" in wanted({"optimizer": {"type": "SGD"}}, h.deepspeed_live(accelerator="cpu"))
