"""Hugging Face's two ways to DeepSpeed: Accelerate with its DeepSpeedPlugin, and the Trainer of transformers.

On a CPU both need a process group that is made for them: neither Accelerate's ``cpu=True`` nor the Trainer's
``use_cpu=True`` may be given, for these turn DeepSpeed off (accelerate/state.py, AcceleratorState.__init__).
"""

import contextlib
import functools
import math
import os
import time
import types

import torch
from dsdoctor_smoke import holdings, tiny, zero

# a smoke run asks no server and tells none; read when the packages are imported
QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "WANDB_MODE": "disabled"}
STAGE = 2
VOCABULARY, LENGTH = 128, 16
BF16_ON_CPU = 'transformers refuses bf16 with DeepSpeed on a CPU: "%s" (use_cpu would turn DeepSpeed off)'
ALONE = "the Trainer of this transformers sees %d process with DeepSpeed on a CPU, however many were started"


def run(order, channel):
    os.environ.update(QUIET)
    tiny.rendezvous(channel)
    {"accelerate": by_accelerate, "trainer": by_trainer}[order["recipe"]](order, channel)
    tiny.leave()


def as_users_write(stage):
    """What both need, in the form of Hugging Face's documentation: "auto" wherever they know the value."""
    return {
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto", "initial_scale_power": 8},
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 1000000, "allgather_bucket_size": 1000000},
    }


def precision(settings, dtype):
    """What Hugging Face is to be told: a type that the configuration switches on by itself, ``dtype`` where it says auto."""
    for name in ("bf16", "fp16"):
        if zero.stated(settings, name + ".enabled") is True:
            return name
    section = settings.get(dtype)
    return dtype if isinstance(section, dict) and section.get("enabled") == "auto" else "fp32"


def by_accelerate(order, channel):
    with channel.phase("import accelerate"):
        from accelerate import Accelerator
        from accelerate.utils import DeepSpeedPlugin, InitProcessGroupKwargs

    settings = order["config"] or as_users_write(order["stage"] or STAGE)
    dtype = precision(settings, tiny.choose_dtype(torch, order["dtype"], order["cpu"]))
    with channel.phase("initialize"):
        accelerator = Accelerator(
            mixed_precision="no" if dtype == "fp32" else dtype,
            deepspeed_plugin=DeepSpeedPlugin(hf_ds_config=settings),
            kwargs_handlers=[InitProcessGroupKwargs(backend="gloo")] if order["cpu"] else [],
        )
        engine, optimizer, loader = accelerator.prepare(*parts(order, settings, channel.world_size))[:3]
    insist(engine, accelerator.num_processes, channel.world_size)
    tiny.describe(
        channel, zero.dtype_of(engine), stage=engine.zero_optimization_stage(), offload=zero.offloading(settings)
    )
    tiny.take_steps(channel, order["steps"], accelerated(accelerator, engine, optimizer, loader))
    inputs, targets = zero.global_batch(channel, order, engine, tiny.WIDTHS)
    channel.rank_facts(loss=zero.common_loss(engine, inputs, targets), **holdings.told(engine))


def parts(order, settings, ranks):
    """Model, optimizer and loader of the same fixed global batch as everywhere; placeholders for what the configuration makes."""
    from accelerate.utils import DummyOptim, DummyScheduler

    torch.manual_seed(order["seed"])
    model = tiny.perceptron(torch)
    model.config = types.SimpleNamespace(hidden_size=tiny.WIDTHS[0])  # Accelerate sizes buckets by it
    make = DummyOptim if "optimizer" in settings else torch.optim.AdamW
    optimizer = make(model.parameters(), lr=1e-3)
    micro = zero.stated(settings, "train_micro_batch_size_per_gpu", tiny.MICRO_BATCH)
    times = zero.stated(settings, "gradient_accumulation_steps", 1)  # where a loader ends, Accelerate ends accumulation
    whole = tiny.batch(torch, order["seed"], micro * ranks, tiny.WIDTHS, torch.float32, "cpu")
    pairs = torch.utils.data.TensorDataset(*[tensor.repeat(times, 1) for tensor in whole])
    found = [model, optimizer, torch.utils.data.DataLoader(pairs, batch_size=micro)]
    if "scheduler" in settings:
        found.append(DummyScheduler(optimizer, total_num_steps=order["steps"] * ranks, warmup_num_steps=1))
    return found


def accelerated(accelerator, engine, optimizer, loader):
    """One optimizer step in Accelerate's own words."""
    batches = endless(loader)
    kind = tiny.torch_dtype(torch, zero.dtype_of(engine))

    def step():
        total = 0.0
        for _ in range(engine.gradient_accumulation_steps()):
            inputs, targets = next(batches)
            with accelerator.accumulate(engine):
                loss = torch.nn.functional.mse_loss(engine(inputs.to(kind)).float(), targets.to(kind).float())
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            total += float(loss.detach())
        mean = tiny.mean_over_ranks(torch, total / engine.gradient_accumulation_steps())
        return mean, engine.get_global_grad_norm(), zero.scale_of(engine)

    return step


def endless(loader):
    while True:
        yield from loader


def insist(engine, processes, ranks):
    """An environment variable or an argument can turn DeepSpeed off without a word."""
    import deepspeed

    if not isinstance(engine, deepspeed.DeepSpeedEngine):
        raise RuntimeError("DeepSpeed was not used: the prepared model is a %s" % type(engine).__name__)
    if processes != ranks:
        raise RuntimeError("Accelerate sees %d processes, %d were started" % (processes, ranks))


def by_trainer(order, channel):
    with channel.phase("import transformers"):
        import transformers
    settings = for_trainer(order)
    dtype = precision(settings, tiny.choose_dtype(torch, order["dtype"], order["cpu"]))
    with contextlib.ExitStack() as phase:
        phase.enter_context(channel.phase("initialize"))
        try:
            told = transformers.TrainingArguments(**arguments(order, settings, dtype))
        except ValueError as error:
            if not (order["cpu"] and "bf16" in str(error)):
                raise
            channel.say("not-applicable", because=BF16_ON_CPU % error)
            return
        if told.world_size != channel.world_size:
            channel.say("not-applicable", because=ALONE % told.world_size)
            return
        trainer = transformers.Trainer(
            model=language_model(transformers, order["seed"]), args=told,
            train_dataset=sentences(order["seed"], told.train_batch_size * told.gradient_accumulation_steps * channel.world_size),
            data_collator=transformers.default_data_collator,
        )  # fmt: skip
        trainer.add_callback(teller(transformers.TrainerCallback, channel, trainer, settings, phase))
        trainer.train()
    finish(order, channel, trainer)


def for_trainer(order):
    """The user's configuration, its scheduler bound to our number of steps; or one in the form of the documentation."""
    if order["config"]:
        settings = dict(order["config"])
        if zero.stated(settings, "scheduler.params.total_num_steps"):
            scheduler = settings["scheduler"]
            settings["scheduler"] = dict(scheduler, params=dict(scheduler["params"], total_num_steps="auto"))
        return settings
    settings = as_users_write(order["stage"] or STAGE)
    adam = dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")
    settings["optimizer"] = {"type": "AdamW", "params": dict(adam, torch_adam=True)}  # no op to compile
    return settings


def arguments(order, settings, dtype):
    """TrainingArguments that agree with the configuration: the Trainer refuses a value that differs."""
    stated = functools.partial(zero.stated, settings)
    beta1, beta2 = stated("optimizer.params.betas", (0.9, 0.999))
    rate = stated("optimizer.params.lr", stated("scheduler.params.warmup_max_lr", 1e-3))
    return dict(
        made_on_a_cpu() if order["cpu"] else {},
        output_dir=os.path.join(order["folder"], "trainer"),
        deepspeed=settings,
        max_steps=order["steps"],
        per_device_train_batch_size=stated("train_micro_batch_size_per_gpu", tiny.MICRO_BATCH),
        gradient_accumulation_steps=stated("gradient_accumulation_steps", 1),
        max_grad_norm=stated("gradient_clipping", 1.0),
        learning_rate=rate,
        adam_beta1=beta1,
        adam_beta2=beta2,
        adam_epsilon=stated("optimizer.params.eps", 1e-8),
        weight_decay=stated("optimizer.params.weight_decay", 0.0),
        lr_scheduler_type="constant",  # where the configuration has no scheduler
        warmup_steps=stated("scheduler.params.warmup_num_steps", 2 if "scheduler" in settings else 0),
        bf16=dtype == "bf16",
        fp16=dtype == "fp16",
        seed=order["seed"],
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=not order["cpu"],
    )


def made_on_a_cpu():
    """A state made before: TrainingArguments.use_cpu would turn DeepSpeed off, and without it no group is found."""
    from accelerate import PartialState
    from transformers.trainer_pt_utils import AcceleratorConfig

    os.environ["ACCELERATE_USE_DEEPSPEED"] = "true"
    if not hasattr(AcceleratorConfig, "use_configured_state"):
        return {}  # before transformers 4.42, when Accelerate found the group by itself
    PartialState(backend="gloo")
    return {"accelerator_config": {"use_configured_state": True}}


def language_model(transformers, seed):
    torch.manual_seed(seed)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=4, max_position_embeddings=LENGTH, use_cache=False,
        )
    )  # fmt: skip


def sentences(seed, count):
    """One global batch of random words: every epoch is one step on it."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(VOCABULARY, (count, LENGTH), generator=generator)
    labels = words.clone()
    labels[:, 0] = -100  # never predicted; transformers 4.47.1 counts it unless told so
    return [{"input_ids": words[i], "labels": labels[i]} for i in range(count)]


def teller(base, channel, trainer, settings, phase):
    """A callback that tells phases and steps. The Trainer starts the engine within train()."""

    class Teller(base):
        def on_train_begin(self, args, state, control, **kwargs):
            engine = trainer.model_wrapped
            insist(engine, args.world_size, channel.world_size)
            phase.close()
            tiny.describe(
                channel,
                zero.dtype_of(engine),
                stage=engine.zero_optimization_stage(),
                offload=zero.offloading(settings),
            )
            phase.enter_context(channel.phase("first step"))

        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 1:
                phase.close()
                phase.enter_context(channel.phase("steps"))
            self.started = time.monotonic()

        def on_log(self, args, state, control, logs=None, **kwargs):
            if "loss" not in (logs or {}):
                return  # the summary after the last step
            ms, loss = (time.monotonic() - self.started) * 1000, float(logs["loss"])
            scale = zero.scale_of(trainer.model_wrapped)
            channel.step(state.global_step, loss, ms, tiny.finite(logs.get("grad_norm")), tiny.finite(scale))
            if not math.isfinite(loss):
                raise FloatingPointError("the loss of step %d became %s" % (state.global_step, loss))

    return Teller()


def finish(order, channel, trainer):
    """The loss of the same sentences on every rank."""
    engine = trainer.model_wrapped
    rows = torch.stack([row["input_ids"] for row in sentences(order["seed"], tiny.MICRO_BATCH)]).to(engine.device)
    engine.eval()
    with torch.no_grad():
        loss = engine(input_ids=rows, labels=rows).loss
    channel.rank_facts(loss=float(loss), **holdings.told(engine))
