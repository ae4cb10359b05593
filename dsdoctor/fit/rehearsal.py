"""Two steps of training rehearsed tensor by tensor, to learn what torch's allocator will have reserved when they are over.

What it keeps is more than what is needed at once: a flat tensor of all gradients does not fit into the holes that many
activations leave. Order and sizes as in DeepSpeed 0.19.8 and transformers 5, seen in the allocator's history on an H200.
"""

from dsdoctor.fit.activations import blocks_of
from dsdoctor.fit.allocator import Allocator, Block
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.sizes import Sizes, gathers, sizes, sub_groups
from dsdoctor.fit.strategies import Strategy
from dsdoctor.fit.training import Training, share

Blocks = list[Block | None]


class Part:
    """What a ZeRO stage does with parameters, gradients and states: the whole model on each GPU (DDP)."""

    def __init__(self, s: Sizes, memory: Allocator) -> None:
        self.s, self.memory = s, memory
        self.tensors = [size for part in s.shape.parts for _ in range(part.times) for size in part.tensors]
        self.gradients: Blocks = []
        self.stepped = False

    def each(self, width: float) -> Blocks:
        return [self.memory.take(width * size) for size in self.tensors]

    def start(self) -> None:
        self.each(self.s.width)
        if not self.s.mixed:
            return
        self.each(4)
        fake = [*self.each(self.s.width), *self.each(4)]  # the unfused optimizer takes a step on zeros
        if self.s.training.optimizer != "adamw":
            self.each(self.s.training.state_bytes)
            self.stepped = True
        self.memory.give(*fake)

    def fetch(self, elements: int) -> Block | None:
        """Makes a layer's parameters whole."""
        return self.memory.take(self.s.width * elements) if gathers(self.s) else None

    def buckets(self) -> Blocks:
        return []

    def gradient(self, elements: int) -> None:
        self.gradients.append(self.memory.take(self.s.width * elements))

    def end_backward(self) -> None:
        pass

    def step(self) -> None:
        copies = self.each(4) if self.s.mixed else []
        if self.s.training.optimizer == "adamw":  # fused: one flat tensor
            flat = self.memory.take(4 * self.s.trained)
            self.memory.give(*copies, *self._gradients())
            self._states()
            self.memory.give(flat)
            return
        self._states()
        lists = self.each(4) if self.s.training.optimizer == "adamw-torch" else []
        self.memory.give(*copies, *lists, *self._gradients())

    def _gradients(self) -> Blocks:
        mine, self.gradients = self.gradients, []
        return mine

    def _states(self) -> None:
        if not self.stepped:
            self.memory.take(self.s.training.state_bytes * self.s.part / 2)
            self.memory.take(self.s.training.state_bytes * self.s.part / 2)
        self.stepped = True


class Partitioned(Part):
    """ZeRO-1 and 2."""

    mine: Block | None = None
    reduced = 0

    def start(self) -> None:
        single = self.each(self.s.width)
        self.memory.empty_cache()
        self.memory.take(self.s.width * self.s.trained)
        self.memory.give(*single)
        copy = self.memory.take(self.s.width * self.s.part)
        if self.s.plan.optimizer == "gpu":
            if self.s.mixed:
                self.memory.take(4 * self.s.part)
                self.memory.give(copy)
            self.memory.give(self.memory.take(4 * self.s.part))
        else:
            self.memory.give(copy)
            self.memory.take(self.s.width * self.s.largest)

    def buckets(self) -> Blocks:
        return [
            self.memory.take(self.s.width * self.s.training.buckets.reduce) for _ in range(2 if self.s.overlap else 1)
        ]

    def gradient(self, elements: int) -> None:
        if self.s.plan.stage == 1 and not self.s.overlap:
            super().gradient(elements)
            return
        self.memory.give(self.memory.take(self.s.width * elements))
        if self.s.plan.optimizer != "gpu":  # for its norm, then for the copy that goes to RAM
            self.memory.give(self.memory.take(8 * elements))
            self.memory.give(self.memory.take(4 * elements))
        self.reduced += elements
        if self.mine is None and self.s.plan.optimizer == "gpu" and self.reduced >= self.s.training.buckets.reduce:
            self.mine = self.memory.take(self.s.width * self.s.part)

    def end_backward(self) -> None:
        if self.mine is None and self.s.plan.optimizer == "gpu":
            self.mine = self.memory.take(self.s.width * self.s.part)
        self.memory.give(*self._gradients())
        self.reduced = 0

    def step(self) -> None:
        if self.s.plan.optimizer != "gpu":
            return
        flat = self.memory.take(self.s.width * self.s.part)
        narrow = self.memory.take(4 * self.s.part) if self.s.mixed else None
        if self.s.mixed:
            self.memory.give(flat)
        self.memory.give(self.mine)
        self.mine = None
        self._states()
        if self.s.training.optimizer == "adamw-torch":
            self.memory.give(self.memory.take(4 * self.s.part))
        self.memory.give(narrow if self.s.mixed else flat)


class Sharded(Part):
    """ZeRO-3."""

    def start(self) -> None:
        ranks = self.s.training.world
        pieces: Blocks = []
        for size in self.tensors:
            whole = self.memory.take(self.s.width * size)
            pieces.append(self.memory.take(self.s.width * share(size, ranks)))
            self.memory.give(whole)
        self.memory.give(*pieces)
        if self.s.plan.parameters == "gpu":
            self.memory.empty_cache()
            self.memory.take(self.s.width * share(self.s.all, ranks))
        if self.s.plan.optimizer == "gpu":
            for group in sub_groups(self.s) if self.s.mixed else ():
                narrow = self.memory.take(4 * group)
                self.memory.take(4 * group)
                self.memory.give(narrow)
            self.memory.give(self.memory.take(4 * max(sub_groups(self.s))))
        self.memory.take(self.s.width * self.s.training.buckets.reduce)
        if self.s.plan.optimizer == "gpu":
            self.memory.take(self.s.width * self.s.part)

    def gradient(self, elements: int) -> None:
        self.memory.give(self.memory.take(self.s.width * elements))

    def step(self) -> None:
        if self.s.plan.optimizer != "gpu":
            return
        for group in sub_groups(self.s):
            flat = self.memory.take(self.s.width * group)
            wide = self.memory.take(4 * group) if self.s.mixed else None
            if self.s.mixed:
                self.memory.give(flat)
            if not self.stepped:
                self.memory.take(self.s.training.state_bytes * group / 2)
                self.memory.take(self.s.training.state_bytes * group / 2)
            self.memory.give(wide if self.s.mixed else flat)
        self.stepped = True


PARTS: dict[int, type[Part]] = {0: Part, 1: Partitioned, 2: Partitioned, 3: Sharded}


def reserved(shape: ModelShape, training: Training, plan: Strategy) -> int:
    """Bytes that torch's allocator holds after two steps, without the driver's own."""
    s, memory = sizes(shape, training, plan), Allocator()
    part = PARTS[plan.stage](s, memory)
    part.start()
    for _ in range(2):
        _forward_and_backward(s, memory, part)
        part.step()
    return memory.peak


def _forward_and_backward(s: Sizes, memory: Allocator, part: Part) -> None:
    layers = [p for p in s.shape.parts for _ in range(p.times) if p.name.endswith("layer")]
    saved, passing = blocks_of(s.shape, s.training)
    hidden = s.width * s.shape.hidden * s.training.tokens
    first = memory.take(hidden)
    kept: list[Blocks] = []
    whole: list[Block | None] = []
    live, oldest = 0, 0
    for layer in layers:
        whole.append(part.fetch(layer.elements))
        mine = [memory.take(hidden)] if s.training.checkpointing else []
        run = [memory.take(size) for size in saved]
        memory.give(*[memory.take(size) for size in passing])
        if s.training.checkpointing:
            memory.give(*run)
        kept.append(mine if s.training.checkpointing else run)
        live += layer.elements
        while live > s.training.buckets.live and oldest < len(whole) - 1:  # the first that were fetched go first
            live -= layers[oldest].elements
            memory.give(whole[oldest])
            whole[oldest] = None
            oldest += 1
    last = [memory.take(size) for size in (2 * hidden, hidden, hidden)]
    back = _loss(s, memory)
    part.gradient(s.shape.vocab * s.shape.hidden)
    buckets = part.buckets()
    memory.give(*last)
    for layer, mine, held in zip(reversed(layers), reversed(kept), reversed(whole), strict=True):
        parameters = held or part.fetch(layer.elements)
        again = [memory.take(size) for size in saved] if s.training.checkpointing else []
        flowing = [memory.take(size) for size in (*passing, s.width * s.shape.ffn * s.training.tokens)]
        for elements in layer.tensors:
            part.gradient(elements)
        memory.give(*mine, *again, *flowing, parameters)
    for other in s.shape.parts:
        if other.name == "embedding":
            part.gradient(other.elements)
    memory.give(first, back)
    part.end_backward()
    memory.give(*buckets)


def _loss(s: Sizes, memory: Allocator) -> Block | None:
    """Logits, their fp32 copy, log-softmax, and the way back; what stays is the gradient of the last hidden state."""
    words = s.shape.vocab * s.training.tokens
    logits, wide, soft = (memory.take(width * words) for width in (s.width, 4, 4))
    memory.give(wide, logits)
    one, two = memory.take(4 * words), memory.take(4 * words)
    memory.give(one, soft)
    narrow = memory.take(s.width * words)
    memory.give(two)
    back = memory.take(s.width * s.shape.hidden * s.training.tokens)
    memory.give(narrow)
    return back
