"""Two steps of training rehearsed tensor by tensor, to learn what torch's allocator will have reserved when they are over.

What it keeps is more than what is needed at once: a flat tensor of all gradients does not fit into the holes that many
activations leave. Order and sizes as in DeepSpeed 0.19.8 and transformers 5, seen in the allocator's history on an H200.
"""

from typing import Final

from dsdoctor.fit.activations import blocks_of
from dsdoctor.fit.allocator import Allocator, Block
from dsdoctor.fit.shapes import ModelShape
from dsdoctor.fit.sizes import Sizes, gathers, sizes, sub_groups
from dsdoctor.fit.strategies import Strategy
from dsdoctor.fit.tensors import Part as Layer
from dsdoctor.fit.training import LORA_ATTENTION, Training, share

Blocks = list[Block | None]
SINGLY: Final = 40  # layers, at most, that are rehearsed one by one
TOGETHER: Final = 20  # groups of layers of a deeper model


class Part:
    """What a ZeRO stage does with parameters, gradients and states: the whole model on each GPU (DDP)."""

    def __init__(self, s: Sizes, memory: Allocator) -> None:
        self.s, self.memory = s, memory
        self.tensors = [size for part in s.shape.parts for _ in range(part.times) for size in part.tensors]
        adapters = 2 * LORA_ATTENTION * s.shape.layers if s.training.lora_rank else 0
        self.trained = [s.trained // adapters] * adapters if adapters else self.tensors
        self.gradients: Blocks = []
        self.stepped = False

    def each(self, width: float) -> Blocks:
        return [self.memory.take(width * size) for size in self.tensors]

    def each_trained(self, width: float) -> Blocks:
        return [self.memory.take(width * size) for size in self.trained]

    def start(self) -> None:
        self.each(self.s.width)
        if not self.s.mixed:
            return
        self.each_trained(4)
        fake = [*self.each_trained(self.s.width), *self.each_trained(4)]  # the unfused optimizer takes a step on zeros
        if self.s.training.optimizer != "adamw":
            self.each_trained(self.s.training.state_bytes)
            self.stepped = True
        self.memory.give(*fake)

    def fetch(self, tensors: tuple[int, ...], times: int) -> Blocks:
        """Makes the parameters of a layer, or of as many as may be whole, whole."""
        if not gathers(self.s):
            return []
        size = sum(tensors)
        return [
            self.memory.take(self.s.width * size)
            for _ in range(max(1, min(times, self.s.training.buckets.live // size)))
        ]

    def buckets(self) -> Blocks:
        return []

    def gradient(self, elements: int, times: int = 1) -> None:
        """One tensor's, or those of as many equal layers."""
        self.gradients += [self.memory.take(self.s.width * elements) for _ in range(times)]

    def end_backward(self) -> None:
        pass

    def step(self) -> None:
        copies = self.each_trained(4) if self.s.mixed else []
        if self.s.training.optimizer == "adamw":  # fused: one flat tensor
            flat = self.memory.take(4 * self.s.trained)
            self.memory.give(*copies, *self._gradients())
            self._states()
            self.memory.give(flat)
            return
        self._states()
        lists = self.each_trained(4) if self.s.training.optimizer == "adamw-torch" else []
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
            self.memory.touch(4 * self.s.part)
        else:
            self.memory.give(copy)
            self.memory.take(self.s.width * self.s.largest)

    def buckets(self) -> Blocks:
        return [
            self.memory.take(self.s.width * self.s.training.buckets.reduce) for _ in range(2 if self.s.overlap else 1)
        ]

    def gradient(self, elements: int, times: int = 1) -> None:
        if self.s.plan.stage == 1 and not self.s.overlap:
            super().gradient(elements, times)
            return
        self.memory.touch(self.s.width * elements)
        if self.s.plan.optimizer != "gpu":  # for its norm, then for the copy that goes to RAM
            self.memory.touch(8 * elements)
            self.memory.touch(4 * elements)
        self.reduced += elements * times
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
            self.memory.touch(4 * self.s.part)
        self.memory.give(narrow if self.s.mixed else flat)


class Sharded(Part):
    """ZeRO-3."""

    def start(self) -> None:
        if self.s.plan.parameters == "gpu":  # whatever passed through is given back to the driver
            self.memory.take(self.s.width * share(self.s.all, self.s.training.world))
        elif not self.s.training.zero_init:
            self.memory.give(*self.each(self.s.width))  # the whole model, on its way from RAM to RAM
        if self.s.plan.optimizer == "gpu":
            for group in sub_groups(self.s):
                copy = self.memory.take(4 * group) if self.s.mixed else None
                self.memory.take(4 * group)
                self.memory.give(copy)
            self.memory.touch(4 * max(sub_groups(self.s)))
        self.memory.take(self.s.width * self.s.training.buckets.reduce)
        if self.s.plan.optimizer == "gpu":
            self.memory.take(self.s.width * self.s.part)

    def gradient(self, elements: int, times: int = 1) -> None:
        self.memory.touch(self.s.width * elements)

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
            if self.s.training.optimizer == "adamw-torch":
                self.memory.touch(4 * group)
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


def _groups(s: Sizes) -> list[tuple[Layer, int]]:
    """The layers one after another; of a deep model several equal ones together, which is as good and much faster."""
    layers = [part for part in s.shape.parts if part.name.endswith("layer")]
    count = sum(part.times for part in layers)
    size = 1 if count <= SINGLY else -(-count // TOGETHER)
    found = []
    for part in layers:
        full, rest = divmod(part.times, size)
        found += [(part, size)] * full + ([(part, rest)] if rest else [])
    return found


def _forward(
    s: Sizes, memory: Allocator, part: Part, groups: list[tuple[Layer, int]]
) -> tuple[list[Blocks], list[Blocks]]:
    """What each group of layers keeps, and its parameters that stay whole."""
    saved, passing = blocks_of(s.shape, s.training)
    hidden, again = s.width * s.shape.hidden * s.training.tokens, s.training.checkpointing
    kept: list[Blocks] = []
    whole: list[Blocks] = []
    live, oldest = 0, 0
    for layer, times in groups:
        whole.append(part.fetch(layer.tensors, times))
        mine = [memory.take(hidden) for _ in range(times)] if again else []
        run: Blocks = []
        for _ in range(1 if again else times):  # what goes at once is the same for each of them
            run += [memory.take(size) for size in saved]
            memory.give(*[memory.take(size) for size in passing])
        if again:
            memory.give(*run)
        kept.append(mine if again else run)
        live += layer.elements * times
        while live > s.training.buckets.live and oldest < len(whole) - 1:  # the first that were fetched go first
            live -= groups[oldest][0].elements * groups[oldest][1]
            memory.give(*whole[oldest])
            whole[oldest] = []
            oldest += 1
    return kept, whole


def _forward_and_backward(s: Sizes, memory: Allocator, part: Part) -> None:
    groups = _groups(s)
    saved, passing = blocks_of(s.shape, s.training)
    hidden = s.width * s.shape.hidden * s.training.tokens
    first = memory.take(hidden)
    kept, whole = _forward(s, memory, part, groups)
    last = [memory.take(size) for size in (2 * hidden, hidden, hidden)]
    back = _loss(s, memory)
    frozen = s.training.lora_rank > 0  # gradients of adapters are small ones
    if not frozen:
        part.gradient(s.shape.vocab * s.shape.hidden)
    buckets = part.buckets()
    memory.give(*last)
    for (layer, times), mine, held in zip(reversed(groups), reversed(kept), reversed(whole), strict=True):
        parameters = held or part.fetch(layer.tensors, times)
        again = [memory.take(size) for size in saved] if s.training.checkpointing else []
        flowing = [memory.take(size) for size in (*passing, s.width * s.shape.ffn * s.training.tokens)]
        for elements in () if frozen else layer.tensors:
            part.gradient(elements, times)
        memory.give(*mine, *again, *flowing, *parameters)
    for other in s.shape.parts:
        if other.name == "embedding" and not frozen:
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
