"""The first file that a rank runs: opens the channel, imports torch and DeepSpeed, hands over to the recipe's module.

Its last argument is the order (the deepspeed launcher puts --local_rank before it), as JSON: recipe, module, steps, dtype (null: the best here), seed, folder (private to this
run), nvme (a folder for swap files, or null), config (a DeepSpeed configuration, or null: the recipe's own), cpu.
"""

import importlib
import importlib.util
import json
import os
import sys

PACKAGE = "dsdoctor_smoke"


def load_package():
    """The folder of this file as a package, found by its place: the patient has no dsdoctor installed."""
    folder = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)


def main():
    order = json.loads(sys.argv[-1])
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd()  # what shadows torch for the user's script shadows it here
    load_package()
    channel = importlib.import_module(PACKAGE + ".channel").Channel(order)
    with channel.telling():
        with channel.phase("import torch"):
            importlib.import_module("torch")
        with channel.phase("import deepspeed"):
            importlib.import_module("deepspeed")
        channel.announce_ops()
        importlib.import_module(PACKAGE + "." + order["module"]).run(order, channel)


if __name__ == "__main__":
    main()
