"""Pane 5: every fact of the snapshot, as a tree that is filled where it is opened; below it a long value in full."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static, Tree
from textual.widgets.tree import TreeNode

from dsdoctor.facts import Fact, Unavailable
from dsdoctor.facts.snapshot import SECTIONS
from dsdoctor.model import Report
from dsdoctor.tui.widgets.text import line, say

_NAMES = ("name", "code", "path", "command", "index")  # fields by which an item of a list is known


class Facts(Vertical):
    """The snapshot: sections, and for a missing one the reason."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)

    def compose(self) -> ComposeResult:
        tree: Tree[Any] = Tree("facts", id="facts-tree")
        tree.show_root = False
        tree.guide_depth = 2
        yield tree
        yield Static(id="fact")

    @property
    def tree_(self) -> Tree[Any]:
        return self.query_one("#facts-tree", Tree)

    def code(self) -> str | None:
        return None

    def commands(self) -> tuple[str, ...]:
        return ()

    def focus_pane(self) -> None:
        self.call_after_refresh(self.tree_.focus)

    def show(self, report: Report) -> None:
        """Show the facts of ``report``."""
        facts = report.facts
        root = self.tree_.clear().root
        root.add_leaf(_pair("patient", report.patient))
        root.add_leaf(_pair("origin", facts.origin))
        root.add_leaf(_pair("taken at", facts.taken_at or "not known"))
        for kind, name in SECTIONS.items():
            section = facts.section(kind)
            if isinstance(section, Unavailable):
                root.add_leaf(Text.assemble((name, "bold"), "  ", line(f"MISSING {section.kind}: {section.detail}")))
            else:
                root.add(Text(name, style="bold"), data=section)
        root.expand()
        self.call_after_refresh(self.tree_.move_cursor, root.children[0])

    @on(Tree.NodeHighlighted)
    def _read(self, event: Tree.NodeHighlighted[Any]) -> None:
        self.query_one("#fact", Static).update(say(str(event.node.label)))

    @on(Tree.NodeExpanded)
    def _fill(self, event: Tree.NodeExpanded[Any]) -> None:
        node = event.node
        if node.data is None or node.children:
            return
        for name, value in _parts(node.data):
            _add(node, name, value)


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Fact):
        return [(name.replace("_", " "), getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in sorted(value.items(), key=lambda item: str(item[0]))]
    return [(_called(number, part), part) for number, part in enumerate(value)]


def _called(number: int, part: Any) -> str:
    names = [getattr(part, field) for field in _NAMES if hasattr(part, field)] if isinstance(part, Fact) else []
    return str(names[0]) if names else str(number)


def _add(node: TreeNode[Any], name: str, value: Any) -> None:
    if isinstance(value, Fact):
        node.add(line(name, "bold"), data=value)
    elif isinstance(value, (tuple, list, Mapping)) and value:
        node.add(Text.assemble(line(name), f"  ({len(value)})"), data=value)
    else:
        node.add_leaf(_pair(name, _say(name, value)))


def _say(name: str, value: Any) -> str:
    """A value as a person reads it: ``None`` is not known, an empty tuple is none."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (tuple, list, Mapping)):
        return "none"
    if name.endswith("bytes") and isinstance(value, int):
        return f"{value} ({value / 2**30:.1f} GiB)"
    return str(value)


def _pair(name: str, value: str) -> Text:
    return Text.assemble((line(name).plain, "bold"), ": ", line(value))
