"""Pane 1: families with their counts, their checks, and what the selected check found."""

from collections.abc import Callable
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static, Tree
from textual.widgets.tree import TreeNode

from dsdoctor.model import Report, Verdict
from dsdoctor.tui import state
from dsdoctor.tui.widgets import detail
from dsdoctor.tui.widgets.reader import Pane, Reader
from dsdoctor.tui.widgets.text import clean, line, say

Entry = state.Family | Verdict


class Search(Input):
    """Filters while typing; Enter keeps the search, Esc ends it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "End the search", show=False)]

    def action_leave(self) -> None:
        self.value = ""
        self.post_message(self.Submitted(self, ""))


class Checks(Tree[Entry]):
    """A row that is too long ends in an ellipsis."""

    def render_label(self, node: TreeNode[Entry], base_style: Style, style: Style) -> Text:
        label = super().render_label(node, base_style, style)
        guides = self.guide_depth if isinstance(node.data, Verdict) else 0
        label.truncate(max(self.scrollable_content_region.width - guides, 10), overflow="ellipsis")
        return label


class Findings(Pane):
    """Families and checks on the left, the selected one on the right."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "end_search", "End the search", show=False)]

    def __init__(self, explain: Callable[[str], str | None], id: str) -> None:
        super().__init__(id=id)
        self._explain = explain
        self._report: Report | None = None
        self.failed_only = False
        self._search = ""

    def compose(self) -> ComposeResult:
        tree = Checks("checks", id="checks")
        tree.show_root = False
        tree.guide_depth = 2
        with Vertical(id="left"):
            yield Search(placeholder="search: words of a code, message, state ...", id="search")
            yield Static(id="shown")
            yield tree
        yield Reader()

    @property
    def tree_(self) -> Tree[Entry]:
        return self.query_one("#checks", Checks)

    def list_widget(self) -> Tree[Entry]:
        return self.tree_

    def selected(self) -> Verdict | None:
        node = self.tree_.cursor_node
        return node.data if node is not None and isinstance(node.data, Verdict) else None

    def code(self) -> str | None:
        verdict = self.selected()
        return verdict.code if verdict else None

    def commands(self) -> tuple[str, ...]:
        verdict = self.selected()
        remedies = [f.remedy for f in verdict.findings if f.remedy] if verdict else []
        return tuple(dict.fromkeys(command for r in remedies for command in r.commands))

    def show(self, report: Report, select: str | None = None) -> None:
        """Show ``report`` with check ``select`` under the cursor, else the one that was there, else the worst."""
        wanted = select or self.code()
        opened = {n.data.name for n in self.tree_.root.children if n.is_expanded and isinstance(n.data, state.Family)}
        self._report = report
        self.tree_.clear()
        shown = state.families(report.verdicts, failed_only=self.failed_only, search=self._search)
        narrowed = self.failed_only or bool(self._search)
        for family in shown:
            holds = any(v.code == wanted for v in family.verdicts)
            node = self.tree_.root.add(_family_label(family), data=family)
            for verdict in family.verdicts:
                node.add_leaf(_check_label(verdict), data=verdict)
            if narrowed or holds or family.name in opened or any(map(state.wrong, family.verdicts)):
                node.expand()
        self.tree_.root.expand()
        self._say_what_is_shown(report, sum(len(f.verdicts) for f in shown))
        self.call_after_refresh(self._put_cursor, wanted)

    def filter_failed(self) -> None:
        self.failed_only = not self.failed_only
        if self._report:
            self.show(self._report)

    def open_search(self) -> None:
        search = self.query_one(Search)
        self.remove_class("-reading")
        search.display = True
        self.call_after_refresh(search.focus)

    def reveal(self, code: str) -> None:
        """Show check ``code`` whatever is filtered."""
        self.failed_only, self._search = False, ""
        with self.prevent(Input.Changed):
            self.query_one(Search).value = ""
        self.query_one(Search).display = False
        if self._report:
            self.show(self._report, select=code)

    def action_end_search(self) -> None:
        self.query_one(Search).action_leave()

    @on(Input.Changed, "#search")
    def _search_changed(self, event: Input.Changed) -> None:
        self._search = event.value
        if self._report:
            self.show(self._report)

    @on(Input.Submitted, "#search")
    def _search_done(self, event: Input.Submitted) -> None:
        event.input.display = bool(event.value)
        self.call_after_refresh(self.tree_.focus)

    @on(Tree.NodeHighlighted)
    def _highlighted(self, event: Tree.NodeHighlighted[Entry]) -> None:
        self._read(event.node)

    @on(Tree.NodeSelected)
    def _selected(self, event: Tree.NodeSelected[Entry]) -> None:
        if isinstance(event.node.data, Verdict):
            self._read(event.node)
            self.open_reader()

    def _read(self, node: TreeNode[Entry]) -> None:
        if self._report is None:
            return
        if isinstance(node.data, Verdict):
            self.reader.show(*detail.check_detail(self._report, node.data, self._explain(node.data.code)))
        elif node.data is not None:
            self.reader.show(*detail.family_detail(node.data))

    def _say_what_is_shown(self, report: Report, shown: int) -> None:
        parts = ["failed only"] if self.failed_only else []
        parts += [f"search: {clean(self._search)}"] if self._search else []
        note = self.query_one("#shown", Static)
        note.display = bool(parts)
        note.update(line(f"{shown} of {len(report.verdicts)} checks ({', '.join(parts)})", "italic"))
        if not shown:
            hint = "f shows all checks" if self.failed_only and not self._search else "Esc ends the search"
            self.reader.show(say(f"No check is left: {', '.join(parts) or 'the report holds none'}."), say(hint))

    def _put_cursor(self, code: str | None) -> None:
        nodes = [node for family in self.tree_.root.children for node in family.children]
        target = next((n for n in nodes if isinstance(n.data, Verdict) and n.data.code == code), None)
        target = target or next((n for n in nodes if isinstance(n.data, Verdict) and state.wrong(n.data)), None)
        target = target or next(iter(self.tree_.root.children), None)
        if target is not None:
            self.tree_.move_cursor(target)
            self.tree_.scroll_to_node(target, animate=False)
            self._read(target)


def _family_label(family: state.Family) -> Text:
    label = Text.assemble((clean(family.name), "bold"))
    for word, number in family.counts.items():
        label.append("  ").append_text(Text(f"{word} {number}", style=state.STYLES[word]))
    return label


def _check_label(verdict: Verdict) -> Text:
    word = state.word(verdict)
    return Text.assemble((word, state.STYLES[word]), " ", line(f"{verdict.code} {state.headline(verdict)}"))
