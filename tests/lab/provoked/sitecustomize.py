"""On the patient's path: makes one rank of a real smoke run misbehave at a chosen moment.

PROVOKE is ``WHERE:WHAT``: WHERE is a function of the patient's modules ("tiny.take_steps", "tiny.rendezvous") before which
rank PROVOKE_RANK (1) does WHAT: skip (sleeps for ever), kill, segv, bus, abort, exit, raise, bind (takes MASTER_PORT).
"""

import os
import sys
import time


def do(what):
    for name, value in (("port", os.environ.get("MASTER_PORT", "")), ("provoked", what)):
        with open(os.path.join(os.environ["TMPDIR"], name), "w") as file:
            file.write(value)
    if what == "skip":
        time.sleep(3600)
    elif what == "exit":
        os._exit(1)
    elif what == "raise":
        raise RuntimeError("provoked")
    elif what == "bind":
        import socket

        held = socket.socket()
        held.bind(("127.0.0.1", int(os.environ["MASTER_PORT"])))
        held.listen()
        sys.provoked = held
    elif what == "segv":
        import ctypes

        ctypes.string_at(0)
    else:
        os.kill(os.getpid(), {"kill": 9, "bus": 7, "abort": 6}[what])


class Finder:
    """Wraps the chosen function as soon as its module has been imported."""

    def __init__(self, module, function, what):
        self.module, self.function, self.what = "dsdoctor_smoke." + module, function, what

    def find_spec(self, name, path, target=None):
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            real = getattr(module, self.function)

            def provoked(*args, **kwargs):
                do(self.what)
                return real(*args, **kwargs)

            setattr(module, self.function, provoked)

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("PROVOKE") and os.environ.get("RANK") == os.environ.get("PROVOKE_RANK", "1"):
    where, what = os.environ["PROVOKE"].split(":")
    if where == "start":
        do(what)
    else:
        sys.meta_path.insert(0, Finder(*where.split("."), what))
