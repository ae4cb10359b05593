"""A strategy's memory as a bar: a piece for each kind of item, a mark where the free memory ends.

Without colour a piece repeats its letter; with colour it is a block that begins with its letter, so nobody needs to tell eight colours
apart. Dots go on to what torch's allocator will keep.
"""

from typing import Final

from dsdoctor.fit.items import Account, Kind

# kind -> letter, colour, what it is called; the model itself is made in RAM, which has no bar
KINDS: Final[dict[Kind, tuple[str, str, str]]] = {
    "parameters": ("P", "34", "parameters"),
    "gradients": ("G", "32", "gradients"),
    "master": ("M", "36", "fp32 master"),
    "optimizer": ("O", "35", "optimizer"),
    "activations": ("A", "33", "activations"),
    "loss": ("L", "31", "loss"),
    "buffers": ("B", "37", "buffers"),
    "runtime": ("R", "90", "runtime"),
}
LIMIT_AT: Final = 0.8  # of the bar's length: the rest shows by how much it is too little
_MOST: Final = 4  # without a limit: how many times the smallest need a bar can show


class Scale:
    """How many bytes a cell of a bar stands for, and in which cell the free memory ends."""

    def __init__(self, cells: int, room: int | None, needs: list[int]) -> None:
        self.cells = cells
        self.mark = int(cells * LIMIT_AT) if room else 0 if room == 0 else None
        if room and self.mark:
            self.cell = room / self.mark
        else:
            self.cell = max(1.0, min(max(needs, default=1), _MOST * max(1, min(needs, default=1))) / cells)

    def at(self, size: float) -> int:
        return round(size / self.cell)


class Brush:
    """How cells are drawn on this terminal."""

    def __init__(self, color: bool, unicode: bool) -> None:
        self.color, self.unicode = color, unicode
        self.line, self.more, self.kept = ("\u2502", "\u203a", "\u00b7") if unicode else ("|", ">", ".")

    def piece(self, kind: Kind, cells: int) -> str:
        letter, colour, _ = KINDS[kind]
        if not self.color or not cells:
            return letter * cells
        return f"\x1b[7;{colour}m{letter}{' ' * (cells - 1)}\x1b[0m"

    def dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.color and text else text


def bar(account: Account, kept: int | None, scale: Scale, brush: Brush) -> str:
    """As wide as the scale says, the mark among its cells."""
    pieces = _cells(account, scale)
    full = sum(cells for _, cells in pieces)
    dots = max(0, min(scale.at(kept or 0), scale.cells) - full)
    cut = full > scale.cells
    drawn: list[tuple[Kind | str, int]] = [*pieces, (brush.kept, dots), (" ", max(0, scale.cells - full - dots))]
    left = _upto(drawn, 0, scale.cells if scale.mark is None else scale.mark)
    right = [] if scale.mark is None else _upto(drawn, scale.mark, scale.cells - cut)
    if scale.mark is None and cut:
        left = _upto(drawn, 0, scale.cells - 1)
    line = "" if scale.mark is None else brush.line
    return _draw(left, brush) + line + _draw(right, brush) + (brush.more if cut else "")


def _cells(account: Account, scale: Scale) -> list[tuple[Kind, int]]:
    """Each kind from where the ones before it end, so that roundings do not add up."""
    found, upto, end = [], 0, 0
    for kind in KINDS:
        upto += account.of(kind)
        if (cells := scale.at(upto) - end) > 0:
            found.append((kind, cells))
            end += cells
    return found


def _upto(drawn: list[tuple[Kind | str, int]], start: int, end: int) -> list[tuple[Kind | str, int]]:
    """The pieces between two cells."""
    at, found = 0, []
    for kind, cells in drawn:
        first, last = max(at, start), min(at + cells, end)
        if last > first:
            found.append((kind, last - first))
        at += cells
    return found


def _draw(pieces: list[tuple[Kind | str, int]], brush: Brush) -> str:
    return "".join(brush.piece(kind, cells) if kind in KINDS else brush.dim(kind * cells) for kind, cells in pieces)


def legend(kinds: list[Kind], brush: Brush, *, kept: bool, limit: bool) -> list[str]:
    """The words for the letters that occur."""
    told = [f"{brush.piece(kind, 1)} {KINDS[kind][2]}" for kind in KINDS if kind in kinds]
    told += [f"{brush.kept} kept by torch's allocator"] if kept else []
    return [*told, f"{brush.line} all that is free"] if limit else told
