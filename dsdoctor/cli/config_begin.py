"""`dsdoctor config --new`."""

from typing import Any

from dsdoctor.request import ExaminationError

WISHES = ("stage", "precision", "offload_optimizer", "offload_param", "nvme_path", "micro_batch")


def begin(values: dict[str, Any]) -> int:
    """Print a new config."""
    from dsdoctor.cli.output import write
    from dsdoctor.config.new import Wish, problem, text

    if values["files"]:
        raise ExaminationError(
            f"--new begins a config and reads none: leave {values['files'][0]} out (-o FILE writes it)"
        )
    wish = Wish(framework=values["framework"] or "none", **{n: values[n] for n in WISHES if values[n] is not None})
    nvme = "nvme" in (wish.offload_optimizer, wish.offload_param)
    if values["nvme_path"] is not None and not nvme:
        raise ExaminationError("--nvme-path belongs to an offload to nvme")
    if values["micro_batch"] is not None and wish.framework in ("hf", "accelerate"):
        raise ExaminationError(
            f"--micro-batch: with --framework {wish.framework} the script says it, and the config auto"
        )
    if why := problem(wish):
        raise ExaminationError(why)
    write(text(wish), values["output"])
    return 0
