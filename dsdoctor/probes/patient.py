"""The live probe: one child in the patient imports torch and DeepSpeed and runs ds_report, step by step."""

import os
from typing import Any

import msgspec

from dsdoctor.facts import (
    ConfigWords,
    DeepSpeedLive,
    DsReport,
    Import,
    OpBuilders,
    Python,
    TorchLive,
    Unavailable,
    UnavailableKind,
)
from dsdoctor.probes.answers import entry
from dsdoctor.probes.python import SCRIPTS
from dsdoctor.probes.runner import Ran
from dsdoctor.probes.system import System
from dsdoctor.readers import ds_report

STALL_S = 6.0  # neither CPU time nor bytes read for so long: it hangs (see runner.run)
TAIL_LINES = 15
_NOT_REACHED = Import(outcome="not-reached")
_TORCH_FIELDS = frozenset(TorchLive.__struct_fields__) - {"imported", "cpp_extension", "kernel"}
_DEEPSPEED_FIELDS = frozenset(DeepSpeedLive.__struct_fields__) - {"imported"}


class Live(msgspec.Struct, frozen=True):
    """What one child told."""

    torch_live: TorchLive
    deepspeed_live: DeepSpeedLive
    ds_report: DsReport | Unavailable
    op_builders: OpBuilders | Unavailable
    config_words: ConfigWords | Unavailable


class ConfigOrder(msgspec.Struct, frozen=True):
    """A ds_config that the patient's DeepSpeed is asked about."""

    path: str
    ranks: int | None = None
    fill: bool = True  # "auto" is left out: Hugging Face replaces it

    def words(self) -> list[str]:
        return ["--config", os.path.abspath(self.path), str(self.ranks or 0), "fill" if self.fill else "as-it-is"]


def probe(system: System, python: Python, limit_s: float, config: ConfigOrder | None = None) -> Live:
    """Run the live script, at most ``limit_s`` seconds. What came before a crash or a hang is kept."""
    env = {**system.env, "PYTHONUNBUFFERED": "1"}
    argv = [python.executable, str(SCRIPTS / "live.py"), *(config.words() if config else [])]
    ran = system.run(argv, limit_s, env=env, answer=True, stall_s=STALL_S)
    steps, last = _steps(ran)
    torch_step = _outcome("import torch", steps, last, ran)
    return Live(
        _torch(torch_step, steps, last, ran),
        _deepspeed(torch_step, steps, last, ran),
        _report(steps, last, ran),
        _builders(steps, last, ran),
        _config_words(steps, last, ran, config),
    )


def _steps(ran: Ran) -> tuple[dict[str, dict[str, Any]], str | None]:
    """Finished steps by name, and the step during which the child ended (None: it came to its end)."""
    finished: dict[str, dict[str, Any]] = {}
    current: str | None = None
    for line in ran.answer.splitlines():
        said = entry(line)
        if "begin" in said:
            current = said["begin"]
        elif "end" in said:
            finished[said["end"]] = said
            current = None
    if not finished and current is None and "all" not in finished:
        current = "import torch"  # it did not even come to the first step
    return finished, current


def _outcome(name: str, steps: dict[str, dict[str, Any]], last: str | None, ran: Ran) -> Import:
    """How step ``name`` ended."""
    done = steps.get(name)
    if done is not None:
        if done.get("error_type") is None:
            return Import(outcome="ok", seconds=done.get("seconds"))
        fields = {key: done.get(key) for key in ("seconds", "error_type", "error", "traceback")}
        return Import(outcome="error", during=name, **fields)
    if last != name:
        return _NOT_REACHED
    tail = "\n".join(ran.stderr.splitlines()[-TAIL_LINES:]) or None
    if ran.ending == "timed-out":
        how = "it neither computed nor read anything" if ran.stalled else "it was still working"
        return Import(outcome="timed-out", seconds=ran.seconds, during=name, error=how, traceback=tail)
    if ran.ending == "signalled":
        return Import(outcome="signal", signal=ran.signal, during=name, seconds=ran.seconds, traceback=tail)
    if ran.ending == "not-started":
        return Import(outcome="error", error_type="OSError", error=ran.problem, during=name)
    return Import(outcome="exited", exit_code=ran.code, during=name, seconds=ran.seconds, traceback=tail)


def _torch(imported: Import, steps: dict[str, dict[str, Any]], last: str | None, ran: Ran) -> TorchLive:
    values = _values(steps, "import torch") | _values(steps, "start CUDA")
    cuda = _outcome("start CUDA", steps, last, ran)
    if imported.outcome == "ok" and cuda.outcome not in ("ok", "not-reached"):
        values["cuda_error"] = _sentence("starting CUDA", cuda)
        values["cuda_available"] = False
    kernel = _outcome("run on the GPU", steps, last, ran)
    extension = _values(steps, "import torch.utils.cpp_extension")
    known = {key: value for key, value in {**values, **extension}.items() if key in _TORCH_FIELDS}
    return msgspec.convert(
        {
            **known,
            "imported": msgspec.to_builtins(imported),
            "cpp_extension": msgspec.to_builtins(_outcome("import torch.utils.cpp_extension", steps, last, ran)),
            "kernel": None if kernel.outcome == "not-reached" else msgspec.to_builtins(kernel),
        },
        TorchLive,
    )


def _deepspeed(torch: Import, steps: dict[str, dict[str, Any]], last: str | None, ran: Ran) -> DeepSpeedLive:
    values = {k: v for k, v in _values(steps, "import deepspeed").items() if k in _DEEPSPEED_FIELDS}
    imported = _outcome("import deepspeed", steps, last, ran) if torch.outcome == "ok" else _NOT_REACHED
    return msgspec.convert({**values, "imported": msgspec.to_builtins(imported)}, DeepSpeedLive)


def _report(steps: dict[str, dict[str, Any]], last: str | None, ran: Ran) -> DsReport | Unavailable:
    done = steps.get("ds_report")
    if done is not None and done.get("value"):
        report = ds_report.parse(str(done["value"]["text"]), "ran in the patient")
        return msgspec.structs.replace(report, seconds=done.get("seconds"))
    if done is not None:
        return Unavailable(
            kind="failed", detail=f"ds_report could not be run: {done.get('error_type')}: {done.get('error')}"
        )
    if last == "ds_report":
        return Unavailable(
            kind="timed-out" if ran.ending == "timed-out" else "failed",
            detail=_sentence("ds_report", _outcome("ds_report", steps, last, ran)),
        )
    if last is not None and ran.ending != "not-started":
        return Unavailable(kind="depends", detail=f"not reached: {_sentence(last, _outcome(last, steps, last, ran))}")
    return Unavailable(kind="depends", detail="ds_report needs torch and DeepSpeed to be importable")


def _builders(steps: dict[str, dict[str, Any]], last: str | None, ran: Ran) -> OpBuilders | Unavailable:
    told = _values(steps, "op builders")
    if told:
        accelerator = _values(steps, "import deepspeed").get("accelerator")
        try:
            return msgspec.convert({**told, "accelerator": accelerator}, OpBuilders)
        except msgspec.ValidationError as error:  # a DeepSpeed that none of us has seen
            return Unavailable(kind="failed", detail=f"the op builders answer in a way that is not understood: {error}")
    needs = "the op builders need a DeepSpeed that can be imported"
    return _unanswered("op builders", "asking the op builders", needs, steps, last, ran)


def _config_words(
    steps: dict[str, dict[str, Any]], last: str | None, ran: Ran, config: ConfigOrder | None
) -> ConfigWords | Unavailable:
    if config is None:
        return Unavailable(kind="not-asked", detail="no ds_config was given (--config)")
    name = "judge the config"
    if told := _values(steps, name):
        try:
            return msgspec.convert({**told, "path": config.path}, ConfigWords)
        except msgspec.ValidationError as error:
            return Unavailable(kind="failed", detail=f"DeepSpeed's word on the config is not understood: {error}")
    needs = "judging the config by DeepSpeed needs one that can be imported"
    return _unanswered(name, "asking DeepSpeed about the config", needs, steps, last, ran)


def _unanswered(
    name: str, asking: str, needs: str, steps: dict[str, dict[str, Any]], last: str | None, ran: Ran
) -> Unavailable:
    """Why a step that comes after DeepSpeed's import gave nothing."""
    asked = _outcome(name, steps, last, ran)
    if asked.outcome != "not-reached":
        kind: UnavailableKind = "timed-out" if asked.outcome == "timed-out" else "failed"
        return Unavailable(kind=kind, detail=_sentence(asking, asked))
    if last is not None and ran.ending != "not-started":
        return Unavailable(kind="depends", detail=f"not reached: {_sentence(last, _outcome(last, steps, last, ran))}")
    return Unavailable(kind="depends", detail=needs)


def _values(steps: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    value = steps.get(name, {}).get("value")
    return dict(value) if isinstance(value, dict) else {}


def _sentence(what: str, ended: Import) -> str:
    """One sentence on how ``what`` ended."""
    if ended.outcome == "signal":
        return f"{what} died of {ended.signal}"
    if ended.outcome == "timed-out":
        return f"{what} gave no answer within {ended.seconds or 0:.0f} s"
    if ended.outcome == "exited":
        return f"{what} ended the process with exit code {ended.exit_code}"
    return f"{what} raised {ended.error_type}: {ended.error}"
