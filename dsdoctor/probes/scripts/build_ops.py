"""Runs in the patient: builds and loads ops with DeepSpeed's own builders, one after the other.

``build_ops.py FOLDER IMPORT_S LIMIT_S NAME... --answer-fd N``: several of these may share the names: a file in
FOLDER/claims says that an op is taken. What a build prints goes to FOLDER/logs/NAME.log. An import that takes longer than
IMPORT_S or an op that takes longer than LIMIT_S ends the process; whoever started it ends what it left. Stdlib only,
Python 3.8.
"""

import faulthandler
import importlib
import json
import os
import sys
import time

LIMIT = 2000  # characters of a message


def open_answer():
    descriptor = int(sys.argv[sys.argv.index("--answer-fd") + 1])
    if os.name == "nt":
        import msvcrt

        descriptor = msvcrt.open_osfhandle(descriptor, os.O_WRONLY)
    os.set_inheritable(descriptor, False)
    return os.fdopen(descriptor, "wb", buffering=0)


def say(**values):
    OUT.write(json.dumps(values, default=str, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def all_ops():
    importlib.import_module("torch")
    importlib.import_module("deepspeed")
    module = importlib.import_module("deepspeed.ops.op_builder")
    builders = getattr(module, "ALL_OPS", None)
    return builders or importlib.import_module("deepspeed.ops.op_builder.all_ops").ALL_OPS


def take(folder, name):
    """True for the first process that asks for this op."""
    try:
        os.close(os.open(os.path.join(folder, "claims", name), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def to_log(folder, name):
    """Descriptors 1 and 2 go to the op's log; they stay where they are when it cannot be written."""
    try:
        log = os.open(os.path.join(folder, "logs", name + ".log"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    except OSError:
        return
    flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the user's packages may have replaced or closed it
            pass


def build(folder, limit_s, name, builder):
    say(begin=name)
    to_log(folder, name)
    # not a thread of Python: what hangs may hold the interpreter's lock
    faulthandler.dump_traceback_later(limit_s, exit=True, file=2)
    started = time.monotonic()
    try:
        builder.load(verbose=True)
    except BaseException as error:  # SystemExit too: a builder may do anything
        end = {"error_type": type(error).__name__, "error": words(error), "cause": text(error.__cause__)}
    else:
        end = {}
    faulthandler.cancel_dump_traceback_later()
    flush()  # into this op's log, before the next one's is opened
    say(end=name, seconds=round(time.monotonic() - started, 2), **end)


def words(error):
    try:
        return str(error)[:LIMIT]
    except Exception:  # its own __str__ may raise
        return None


def text(cause):
    return None if cause is None else "%s: %s" % (type(cause).__name__, words(cause))


def main():
    rest = sys.argv[1 : sys.argv.index("--answer-fd")]
    folder, import_s, limit_s, names = rest[0], float(rest[1]), float(rest[2]), rest[3:]
    say(begin="import")
    faulthandler.dump_traceback_later(import_s, exit=True, file=2)
    builders = all_ops()
    faulthandler.cancel_dump_traceback_later()
    say(end="import", known=sorted(builders))
    for name in names:
        if name in builders and take(folder, name):
            build(folder, limit_s, name, builders[name])
    say(done=True)
    flush()
    os._exit(0)  # what the ops hold may not want to be torn down


OUT = open_answer()
faulthandler.enable(2)
if not getattr(sys.flags, "safe_path", False):
    sys.path[0] = os.getcwd()
main()
