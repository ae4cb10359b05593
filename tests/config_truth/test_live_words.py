"""What the live probe tells of a config is what DeepSpeed's config class says of it, with a place."""

import importlib.util
import json

import pytest

from tests.config_truth.generator import configs
from tests.config_truth.oracle import Oracle

pytestmark = pytest.mark.skipif(importlib.util.find_spec("deepspeed") is None, reason="needs torch and deepspeed")


def test_the_live_probe_says_what_deepspeed_says(deepspeed: Oracle) -> None:
    """It refuses exactly what the config class refuses, and names a key of the file, or the whole."""
    refused = 0
    for number, made, ranks in configs(150, start=900):
        text = json.dumps(made)
        told, said = deepspeed.words(text, ranks), deepspeed.refuses(text, ranks)
        mistakes = [word for word in told["words"] if word["kind"] != "deprecated"]
        assert bool(mistakes or told["whole"]) is (said is not None), (number, said, told)
        assert all(word["key"].partition(".")[0] in made for word in mistakes), number
        refused += said is not None
    assert refused > 20
