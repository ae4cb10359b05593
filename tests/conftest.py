"""For all tests: files that take minutes begin first, so that no worker waits for one in the end."""

import pytest

# Trainings keep the processors busy, the view's tests wait for a screen: side by side they take least.
LONG = ("test_recipes.py", "test_report_screen.py", "test_provoked_runs.py", "test_trials.py",
        "test_examination_screen.py")  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
