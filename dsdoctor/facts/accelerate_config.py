"""An Accelerate config (default_config.yaml): keys as Accelerate writes them, with the place of each."""

from dsdoctor.facts.placed import Placed


class AccelerateConfig(Placed, frozen=True, kw_only=True):
    """Of ``values``, "deepspeed_config" and the like hold a dict."""

    problem: str | None = None  # why it could not be read to its end, one sentence
