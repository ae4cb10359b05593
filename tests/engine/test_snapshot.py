"""A snapshot file is read back as it was, or refused in one sentence."""

import pytest

from dsdoctor.facts import Host, SnapshotError, Unavailable
from dsdoctor.facts.snapshot import decode, encode
from dsdoctor.testing import machine

GOOD = machine(Host(system="linux", kernel="6", machine="x86_64"), gpus=Unavailable(kind="denied", detail="no"))


def test_what_was_written_is_what_is_read() -> None:
    assert decode(encode(GOOD), "x") == GOOD


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not valid JSON"),
        (encode(GOOD)[:-200], "not valid JSON"),
        (b"\x00\xff" * 1000, "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[1, 2]", "no schema_version"),
        (b'{"schema_version": 99}', "schema 99"),
        (b'{"schema_version": 1, "tool_version": "1", "host": {"system": "beos"}}', "host"),
        (b'{"schema_version": 1, "tool_version": 7}', "tool_version"),
    ],
    ids=["empty", "cut off", "binary", "deep", "a list", "another version", "wrong value", "wrong type"],
)
def test_unusable_file_is_refused_in_one_sentence(data: bytes, says: str) -> None:
    with pytest.raises(SnapshotError, match=r"machine\.json") as refused:
        decode(data, "machine.json")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
