"""Draw the README's pictures from a recorded machine: `python docs/pictures.py`."""

import asyncio
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from dsdoctor.config_examination import look
from dsdoctor.examination import Request, diagnose, load_knowledge, triage
from dsdoctor.facts import RunPlan, Smoke
from dsdoctor.fit.training import Training
from dsdoctor.fit_examination import Question, judge_fit
from dsdoctor.model import Report
from dsdoctor.recorded import read_snapshot
from dsdoctor.render import config, fit, smoke, text
from dsdoctor.render import triage as render_triage

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "fixtures/smoke/h200/runs.json"
SHOWN = ("zero2", "zero3-nvme", "pipeline", "moe")
MACHINE = ROOT / "fixtures/machines/h200-arch-list-9.0a"
LOG = ROOT / "fixtures/logs/launcher-cpu-adam-ninja-missing/log.txt"
TWO_GPUS = ROOT / "fixtures/machines/h200-x2-arch-list-9.0a"
LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip
CONFIG = """{
  "train_batch_size": 30,
  "train_micro_batch_size_per_gpu": 4,
  "zero_optimisation": {"stage": 2},
  "overlap_comm": true,
  "bf16": {"enabled": true},
  "optimizer": {"type": "AdamW", "lr": 1e-4, "params": {}},
  "elasticity": {"enabled": false}
}
"""
WIDTH, HEIGHT = 100, 34
WIDE = 114  # a row of a run


def spaced(svg: str) -> str:
    """Keep blanks at the start of a text: some renderers drop them otherwise, and words run together."""
    return svg.replace("<text ", '<text xml:space="preserve" ').replace("&#160;", " ")


def picture(ansi: str, title: str, width: int = WIDTH) -> str:
    """SVG of coloured text."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(ansi))
    return console.export_svg(title=title)


def smoke_picture() -> str:
    """SVG of some recorded runs."""
    recorded = msgspec.json.decode(RUNS.read_bytes(), type=Smoke)
    runs = tuple(run for run in recorded.runs if run.recipe in SHOWN)
    return picture(smoke.render(Smoke(runs=runs), width=WIDE, color=True), "dsdoctor smoke", WIDE)


def triage_picture() -> str:
    """SVG of what is said of a recorded log."""
    report = triage(Request(logs=(os.path.relpath(LOG, ROOT),)))
    return picture(render_triage.render(report, width=WIDTH, color=True), "dsdoctor triage")


def fit_picture() -> str:
    """SVG of what is said of a model on a recorded machine: an 8B Llama's numbers on two H200s."""
    machine = read_snapshot(str(TWO_GPUS)).replace(origin="h200-x2")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("llama-3-8b").mkdir()
        Path("llama-3-8b/config.json").write_text(json.dumps(LLAMA))
        asked = Question(
            model="llama-3-8b", training=Training(micro_batch=2, checkpointing=True),
            command="dsdoctor fit --model llama-3-8b --micro-batch 2 --activation-checkpointing",
        )  # fmt: skip
        report = judge_fit(asked, machine)
    return picture(fit.render(report, width=WIDTH, color=True), "dsdoctor fit")


def config_picture() -> str:
    """SVG of what is said of a config with mistakes of which DeepSpeed tells two, one at a time."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("ds_config.json").write_text(CONFIG)
        plan = RunPlan(gpus_per_node=8, named_by="--gpus 8")
        judged = look(Request(config="ds_config.json", run_plan=plan), "0.19.8")
    return picture(config.render([judged], width=WIDTH, color=True), "dsdoctor config ds_config.json --gpus 8")


async def tui_picture(report: Report) -> str:
    """SVG of the TUI's first screen."""
    from dsdoctor.tui.app import DoctorApp

    app = DoctorApp(Request(snapshot=str(MACHINE)), examine=lambda request, observe: report)
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        for _ in range(20):
            await pilot.pause(0.1)
        return app.export_screenshot(title="dsdoctor tui")


def main() -> None:
    """Write docs/report.svg, smoke.svg, triage.svg, config.svg, fit.svg and tui.svg."""
    os.chdir(ROOT)
    report = diagnose(read_snapshot(str(MACHINE)).replace(origin="h200"), load_knowledge())
    (ROOT / "docs/report.svg").write_text(
        spaced(picture(text.render(report, width=WIDTH, color=True), "dsdoctor check")), "utf-8"
    )
    (ROOT / "docs/smoke.svg").write_text(spaced(smoke_picture()), "utf-8")
    (ROOT / "docs/triage.svg").write_text(spaced(triage_picture()), "utf-8")
    (ROOT / "docs/config.svg").write_text(spaced(config_picture()), "utf-8")
    (ROOT / "docs/fit.svg").write_text(spaced(fit_picture()), "utf-8")
    (ROOT / "docs/tui.svg").write_text(spaced(asyncio.run(tui_picture(report))), "utf-8")


if __name__ == "__main__":
    main()
