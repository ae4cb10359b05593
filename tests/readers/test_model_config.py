"""A model's config.json is read, or one sentence says why not."""

import json
import os
import re
from pathlib import Path

import pytest

from dsdoctor.readers import opened
from dsdoctor.readers.model_config import Unreadable, read

LLAMA = {"model_type": "llama", "hidden_size": 64}


def test_a_file_and_its_folder_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    file = str(tmp_path / "config.json")
    assert read(str(tmp_path)) == read(file) == (LLAMA, file)


def test_infinity_where_it_does_not_matter_is_no_trouble(tmp_path: Path) -> None:
    """Python's json writes it, and so do files of Hugging Face."""
    file = tmp_path / "config.json"
    file.write_text('\ufeff{"model_type": "llama", "time_step_limit": [0.0, Infinity]}')
    assert read(str(file))[0]["model_type"] == "llama"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"hidden_size: 5\n", "odd.json:1:1: this is not JSON"),
        (b'{"a": 1,\n "b": }', "odd.json:2:7: this is not JSON"),
        (b"[1]", "holds no object"),
        (b"\xff\xfe{\x00", "is not UTF-8 text"),
        (b"[" * 100_000, "is nested deeper"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "this is not JSON"),
        (b" " * (9 << 20), "is larger than 8 MiB"),
        (b'{"zero_optimization": {"stage": 2}}', "is a ds_config"),
    ],
)
def test_what_is_no_config_json_is_one_sentence(data: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_bytes(data)
    with pytest.raises(Unreadable, match=re.escape(says)) as raised:
        read(str(file))
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no such file"):
        read(str(tmp_path / "config.json"))
    with pytest.raises(Unreadable, match=r"holds no config\.json"):
        read(str(tmp_path))
    with pytest.raises(Unreadable, match="cannot be read"):
        read("a\0b")


def test_a_name_of_the_hub_is_not_fetched() -> None:
    with pytest.raises(Unreadable, match="nothing is downloaded"):
        read("meta-llama/Meta-Llama-3-70B")


def test_a_pipe_that_stays_silent_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "PATIENCE_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unreadable, match="nothing came through it"):
        read(str(tmp_path / "pipe"))
