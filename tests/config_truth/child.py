"""DeepSpeed, Accelerate and transformers judge configs: imported once, a line of JSON in, a line of JSON out.

``{"text": the file, "ranks": the world size}`` → null, or what DeepSpeed's config class raised.
``{"words": the file, "ranks": ...}`` → what the live probe's script says of it (scripts/config_words.py).
``{"framework": "hf" or "accelerate", "config": ..., "args": ..., "yaml": ..., "mixed": ...}`` → ``{"config": what reaches
deepspeed.initialize}`` or ``{"error": ...}``: no engine is built, everything before it is the real thing.
"""

import importlib
import importlib.util
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import torch  # noqa: E402
from deepspeed import comm  # noqa: E402
from deepspeed.runtime.config import DeepSpeedConfig  # noqa: E402
from deepspeed.runtime.tensor_parallel.init_utils import load_ds_config  # noqa: E402

FOLDER = tempfile.mkdtemp()
FILE = os.path.join(FOLDER, "ds.json")
ranks = 1
comm.get_rank = lambda *_: 0
comm.get_world_size = lambda *_: ranks


class ReachedError(Exception):
    """The config came to DeepSpeed."""


def judge(text: str) -> str | None:
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        DeepSpeedConfig(load_ds_config(FILE))  # as deepspeed.initialize does
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"[:500]
    return None


def words(text: str, count: int) -> Any:
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(text)
    place = Path(__file__).parents[2] / "dsdoctor" / "probes" / "scripts" / "config_words.py"
    spec = importlib.util.spec_from_file_location("config_words", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.words(FILE, count, fill=False)


def through(asked: dict[str, Any]) -> dict[str, Any]:
    """What comes out of a framework."""
    import accelerate.accelerator
    import deepspeed
    from accelerate.state import AcceleratorState

    backend = importlib.import_module("deepspeed.comm.torch")
    backend.build_shm_op = lambda: None  # a minute of compiling, on which no config depends
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        deepspeed.init_distributed("gloo", dist_init_required=False)
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")
    deepspeed.initialize = reached
    accelerate.accelerator.map_pytorch_optim_to_deepspeed = lambda optimizer: optimizer  # it would build an op
    AcceleratorState._reset_state(reset_partial_state=True)
    before = dict(os.environ)
    try:
        {"hf": trainer, "accelerate": accelerated}[asked["framework"]](asked)
    except ReachedError as arrived:
        return {"config": arrived.args[0]}
    except Exception as error:  # noqa: BLE001
        return {"error": f"{type(error).__name__}: {error}"[:900]}
    finally:
        os.environ.clear()
        os.environ.update(before)
    return {"error": "DeepSpeed was not reached"}


def reached(**given: Any) -> None:
    raise ReachedError(given["config_params"])


def model(asked: dict[str, Any]) -> Any:
    """A model whose ``config`` has what the request says: {"hidden_size": 16}; null: none at all."""

    def named(values: dict[str, Any]) -> Any:
        return types.SimpleNamespace(**{k: named(v) if isinstance(v, dict) else v for k, v in values.items()})

    made, values = torch.nn.Linear(2, 2), asked.get("model", {"hidden_size": 16})
    if values is not None:
        made.config = named(values)
    return made


def prepare(plugin: Any, asked: dict[str, Any], *beside: Any, mixed: str | None = None) -> None:
    from accelerate import Accelerator
    from accelerate.utils import DummyOptim, DummyScheduler, InitProcessGroupKwargs

    config, module = plugin.deepspeed_config, model(asked)
    if not os.environ.get("ACCELERATE_CONFIG_DS_FIELDS"):
        os.environ["ACCELERATE_MIXED_PRECISION"] = "no"
    accelerator = Accelerator(
        deepspeed_plugin=plugin, mixed_precision=mixed, kwargs_handlers=[InitProcessGroupKwargs(backend="gloo")]
    )
    parameters = list(module.parameters())
    optimizer = DummyOptim(parameters, lr=1e-3) if "optimizer" in config else torch.optim.AdamW(parameters)
    scheduler = [DummyScheduler(optimizer, total_num_steps=10, warmup_num_steps=1)] if "scheduler" in config else []
    accelerator.prepare(module, optimizer, *scheduler, *beside)


def trainer(asked: dict[str, Any]) -> None:
    """What Trainer.train does with a config until it calls DeepSpeed (deepspeed_init, Accelerator.prepare)."""
    from transformers import TrainingArguments

    wanted = {"output_dir": FOLDER, "report_to": [], "ddp_backend": "gloo", "deepspeed": asked["config"]}
    arguments = TrainingArguments(**wanted, **asked.get("args", {}))
    arguments.hf_deepspeed_config.trainer_config_finalize(arguments, model(asked), 10)
    prepare(arguments.deepspeed_plugin, asked)


def accelerated(asked: dict[str, Any]) -> None:
    """A script that makes an Accelerator, started by hand, or as ``accelerate launch --config_file`` would start it."""
    from accelerate.utils import DeepSpeedPlugin

    if "yaml" in asked:
        os.environ.update(launched(asked["yaml"]))
        plugin = DeepSpeedPlugin()
    else:
        plugin = DeepSpeedPlugin(hf_ds_config=asked["config"])
    loader = torch.utils.data.DataLoader([1] * 8, batch_size=2)
    prepare(plugin, asked, loader, mixed=asked.get("mixed"))


def launched(yaml: str) -> dict[str, str]:
    """The environment that ``accelerate launch`` gives to the ranks."""
    from accelerate.commands import launch
    from accelerate.utils.launch import prepare_deepspeed_cmd_env

    path, made = os.path.join(FOLDER, "acc.yaml"), {}
    with open(path, "w", encoding="utf-8") as file:
        file.write(yaml)
    launch.deepspeed_launcher = lambda args: made.update(prepare_deepspeed_cmd_env(args)[1])
    launch.launch_command(launch.launch_command_parser().parse_args(["--config_file", path, "script.py"]))
    return {key: value for key, value in made.items() if key.startswith("ACCELERATE_")}


for line in sys.stdin:
    asked = json.loads(line)
    ranks = asked.get("ranks", 1)
    if "words" in asked:
        answer = words(asked["words"], ranks)
    else:
        answer = through(asked) if "framework" in asked else judge(asked["text"])
    answers.write(json.dumps(answer, default=str) + "\n")
    answers.flush()
for name in os.listdir(FOLDER):
    os.remove(os.path.join(FOLDER, name))
os.rmdir(FOLDER)
os._exit(0)  # tearing all these packages down takes seconds
