"""Fixtures of the lab: patients that are really broken."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.sick import Sick


@pytest.fixture
def sick(tmp_path: Path) -> Callable[[], Sick]:
    """Makes patients under the test's own folder."""
    count = 0

    def make() -> Sick:
        nonlocal count
        count += 1
        return Sick(tmp_path / f"patient{count}")

    return make
