"""Loaded by live.py in the patient, once DeepSpeed is imported: what its config class says of a ds_config.

Each section is judged by itself, so that one mistake hides no other, then all together. No engine is built, no GPU touched.
Stdlib only, Python 3.8.
"""

import importlib
import logging

LIMIT = 800  # characters of a message
MOST = 60  # words
BATCH, MICRO, STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
ZERO = "zero_optimization"


class Asked(dict):
    """A dict that remembers which keys somebody asked for by name."""

    def __init__(self, values, path, told):
        dict.__init__(
            self, {k: Asked(v, "%s%s." % (path, k), told) if isinstance(v, dict) else v for k, v in values.items()}
        )
        self.path, self.told = path, told

    def ask(self, key):
        self.told.add("%s%s" % (self.path, key))

    def __getitem__(self, key):
        self.ask(key)
        return dict.__getitem__(self, key)

    def __contains__(self, key):
        self.ask(key)
        return dict.__contains__(self, key)

    def get(self, key, default=None):
        self.ask(key)
        return dict.get(self, key, default)

    def pop(self, key, *default):
        self.ask(key)
        return dict.pop(self, key, *default)

    def __copy__(self):
        return self  # DeepSpeed copies it to leave the user's alone: this one is a copy


class Heard(logging.Handler):
    """What DeepSpeed's logger says of old names."""

    def __init__(self):
        logging.Handler.__init__(self, logging.WARNING)
        self.said = []

    def emit(self, record):
        text = record.getMessage()
        if "deprecated" in text.lower():
            self.said.append(text[:LIMIT])


def words(path, ranks, fill):
    """The answer for the file ``path`` on ``ranks`` processes (0: not known); ``fill``: "auto" will be replaced."""
    hjson = importlib.import_module("hjson")
    comm = importlib.import_module("deepspeed.comm")
    with open(path, encoding="utf-8-sig") as file:
        values = hjson.load(file)
    left_out = []
    if fill:
        values = without_auto(values, "", left_out)
        if {BATCH, MICRO, STEPS} & set(left_out):  # Hugging Face makes them agree
            values = dict({k: v for k, v in values.items() if k not in (BATCH, MICRO, STEPS)}, **{MICRO: 1})
    kept = comm.get_rank, comm.get_world_size
    try:
        answer = judge(comm, values, ranks)
    finally:
        comm.get_rank, comm.get_world_size = kept
    return dict(answer, path=path, left_out=left_out[:MOST], ranks=ranks or None)


def without_auto(values, path, left_out):
    kept = {}
    for key, value in values.items():
        if value == "auto":
            left_out.append(path + key)
        else:
            kept[key] = without_auto(value, path + key + ".", left_out) if isinstance(value, dict) else value
    return kept


def judge(comm, values, ranks):
    comm.get_rank = lambda *_: 0
    comm.get_world_size = lambda *_: world[0]
    world, told, found = [1], set(), []
    whole = together(values, world, ranks)
    world[0] = 1
    base = {MICRO: 1}
    if ZERO in values:  # the sections that look at the stage need it beside them
        zero = section(ZERO, dict(base, **{ZERO: values[ZERO]}), told)
        found += zero
        base = base if refused(zero) else dict(base, **{ZERO: values[ZERO]})
    for key in (key for key in values if key != ZERO):
        words = section(key, dict(base, **{key: values[key]}), told)
        lone = ZERO in values and ZERO not in base  # what it asserts may be about the stage
        found += [word for word in words if not (lone and word["kind"] == "AssertionError")]
    known = sorted(name for name in told if here(values, name))
    if whole is None:
        found = [word for word in found if word["kind"] == "deprecated"]
    return {"known": known, "words": found[:MOST], "whole": None if refused(found) else whole}


def refused(found):
    return any(word["kind"] != "deprecated" for word in found)


def here(values, name):
    for part in name.split("."):
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True


def section(key, values, told):
    """The words about one section; what it asked for goes into ``told``."""
    heard, logger = Heard(), importlib.import_module("deepspeed.utils").logger
    logger.addHandler(heard)
    try:
        error = parsed(values, told)
    finally:
        logger.removeHandler(heard)
    found = [{"key": key, "kind": "deprecated", "said": text} for text in heard.said]
    details = getattr(error, "errors", None)
    if error is not None and callable(details):  # pydantic tells each mistake with its place
        for one in details():
            place = ".".join([key] + [str(part) for part in one.get("loc", ())])
            found.append({"key": place, "kind": str(one.get("type")), "said": str(one.get("msg"))[:LIMIT]})
    elif error is not None:
        found.append({"key": key, "kind": type(error).__name__, "said": str(error)[:LIMIT]})
    return found


def parsed(values, told):
    """What DeepSpeed raises at ``values``, or None."""
    config = importlib.import_module("deepspeed.runtime.config").DeepSpeedConfig
    try:
        config(Asked(values, "", told))
    except Exception as error:
        return error
    return None


def together(values, world, ranks):
    """What it says of all sections, on the numbers of ranks that may count."""
    said = None
    for number in sizes(values, ranks):
        world[0] = number
        error = parsed(values, set())
        if error is None:
            return None
        said = said or ("%s: %s" % (type(error).__name__, error))[:LIMIT]
    return said


def sizes(values, ranks):
    """Data-parallel world sizes: without an mpu DeepSpeed does not know of tensor and pipeline parallelism."""
    if ranks:
        share = 1
        for name, key in (("tensor_parallel", "autotp_size"), ("pipeline", "stages")):
            inner = values.get(name)
            share *= max(number(inner.get(key) if isinstance(inner, dict) else 1), 1)
        return [ranks] + ([ranks // share] if 1 < share <= ranks else [])
    fit = number(values.get(BATCH)) // max(number(values.get(MICRO)) * number(values.get(STEPS)), 1)
    return [max(fit, 1) * max(number(values.get("sequence_parallel_size")), 1)]


def number(value):
    return value if isinstance(value, int) and not isinstance(value, bool) else 1
