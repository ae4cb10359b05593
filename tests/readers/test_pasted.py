"""Lines of a pasted text, and their numbers."""

import pytest

from dsdoctor.readers import pasted


def test_numbers_are_those_of_an_editor() -> None:
    text = "first\r\n```json\n> \x1b[1msecond\x1b[0m\n 10%|#  |\r 20%|## |\r\n```\nlast"
    assert pasted.numbered(text) == [(1, "first"), (3, "second"), (4, " 10%|#  |"), (4, " 20%|## |"), (6, "last")]
    assert pasted.lines(text) == ["first", "second", " 10%|#  |", " 20%|## |", "last"]


def test_the_end_of_a_long_text_keeps_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasted, "HEAD_CHARACTERS", 20)
    monkeypatch.setattr(pasted, "TAIL_CHARACTERS", 20)
    found = pasted.numbered("\n".join(f"line {n}" for n in range(1, 101)))
    assert found[0] == (1, "line 1")
    assert found[-1] == (100, "line 100")
    assert len(found) < 10
