"""How a rank tells what it does: JSON lines into a file of its own in the run's folder, never stdout.

Every line has ``t`` (time.monotonic, the same clock for all processes of a machine) and ``what``:
hello, begin, end, setup, step, memory, rank, proof, collective, swap, not-applicable, error, done.
"""

import contextlib
import faulthandler
import json
import os
import re
import signal
import sys
import threading
import time
import traceback

SAMPLE_S = 0.1


class Channel:
    """``rank`` and ``world_size`` are those of the environment that the launcher made."""

    def __init__(self, order):
        self.rank = int(os.environ.get("RANK", "0"))
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        folder = order["folder"]
        self._out = open(os.path.join(folder, "events", "rank%d" % self.rank), "wb", buffering=0)
        self._lock = threading.Lock()
        self._depth = 0
        stacks = open(os.path.join(folder, "stacks", "rank%d" % self.rank), "wb", buffering=0)
        self._stacks = stacks  # must stay open: faulthandler writes to its descriptor
        faulthandler.enable(stacks)
        if hasattr(signal, "SIGUSR1"):
            faulthandler.register(signal.SIGUSR1, stacks, all_threads=True)  # dsdoctor asks where a silent rank stands
        self.say("hello", pid=os.getpid(), local_rank=self.local_rank, world_size=self.world_size)
        threading.Thread(target=self._sample, daemon=True).start()

    def say(self, what, **values):
        # no ASCII escapes: "replace" must see lone surrogates, which no report can hold
        line = json.dumps({"t": time.monotonic(), "what": what, **values}, default=str, ensure_ascii=False)
        with self._lock:
            try:
                self._out.write(line.encode("utf-8", "replace") + b"\n")
            except BrokenPipeError:
                os._exit(1)  # dsdoctor is gone: nobody would end this rank

    @contextlib.contextmanager
    def phase(self, name):
        """Announces a phase and how long it took; of the outermost also the peak of torch's allocator in it."""
        outermost = self._depth == 0
        self._depth += 1
        cuda = _cuda()
        if cuda and outermost:
            cuda.reset_peak_memory_stats()
        self.say("begin", name=name)
        started = time.monotonic()
        try:
            yield
        finally:
            self._depth -= 1
        cuda = _cuda()
        peak = cuda.max_memory_allocated() if cuda and outermost else None
        self.say("end", name=name, seconds=time.monotonic() - started, peak=peak)

    def setup(self, **values):
        """What runs: any of accelerator, device, dtype, stage, world_size, offload, parallel."""
        self.say("setup", **values)

    def step(self, number, loss, ms, grad_norm=None, loss_scale=None):
        self.say("step", number=number, loss=loss, ms=ms, grad_norm=grad_norm, loss_scale=loss_scale)

    def rank_facts(self, **values):
        """What this rank holds: any of the numbers of facts.SmokeRank."""
        self.say("rank", **values)

    def proof(self, name, ok, detail):
        """Something that this rank compared; told by one rank only, or by all with the same name."""
        self.say("proof", name=name, ok=bool(ok), detail=detail)

    @contextlib.contextmanager
    def telling(self):
        """Whatever ends the work is told; the last word is "done"."""
        try:
            yield
        except BaseException as error:
            sys.stderr.write(traceback.format_exc())
            self.say("error", type=type(error).__name__, text=shorten(str(error)))
            self._last_facts()
            sys.exit(1)
        self._last_facts()
        self.say("done")

    def announce_ops(self):
        """Make each op that DeepSpeed compiles or loads a phase. One that is built in another way goes unannounced."""
        try:
            from deepspeed.ops.op_builder.builder import OpBuilder

            jit_load = OpBuilder.jit_load
        except Exception:
            return
        channel = self

        def announced(self, *args, **kwargs):
            name = str(getattr(self, "name", "an op"))
            library = os.path.join(os.environ.get("TORCH_EXTENSIONS_DIR", ""), name, name)
            built = any(os.path.exists(library + ending) for ending in (".so", ".pyd"))
            with channel.phase(("load " if built else "compile ") + name):
                return jit_load(self, *args, **kwargs)

        OpBuilder.jit_load = announced

    def _sample(self):
        """torch's allocator, ten times a second; on a CPU nothing, which still notices that dsdoctor is gone."""
        while True:
            time.sleep(SAMPLE_S)
            cuda, own = (
                _cuda(),
                self.local_rank,
            )  # CUDA's current device is the thread's own: here it would be the first
            try:
                held = (cuda.memory_allocated(own), cuda.memory_reserved(own)) if cuda else (0, 0)
            except Exception:
                held = (0, 0)  # the launcher shows this rank its own device only
            self.say("memory", allocated=held[0], reserved=held[1])

    def _last_facts(self):
        cuda = _cuda()
        self.rank_facts(
            peak_host_bytes=_peak_host_bytes(),
            peak_reserved_bytes=cuda.max_memory_reserved() if cuda else None,
        )


def shorten(text):
    """At most 4000 characters. Of a long build log: its first line, then from the first error on, no line without end."""
    if len(text) > 4000:
        lines = [line[:1000] for line in text.splitlines()]
        wrong = re.compile(r"(?i)\berror\b|undefined reference|cannot find|not found")
        first = next((i for i, line in enumerate(lines) if i and wrong.search(line)), 1)
        text = "\n".join([lines[0]] + lines[first:])
    return text[:4000]


def _cuda():
    """torch.cuda once this rank has a context on a GPU. Asking before would make one."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    try:
        return cuda if cuda is not None and cuda.is_initialized() else None
    except Exception:
        return None


def _peak_host_bytes():
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
