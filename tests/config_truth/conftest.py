"""One child that has imported DeepSpeed, for all tests of this room."""

from collections.abc import Iterator

import pytest

from tests.config_truth.oracle import Oracle


@pytest.fixture(scope="session")
def deepspeed() -> Iterator[Oracle]:
    with Oracle() as child:
        yield child
