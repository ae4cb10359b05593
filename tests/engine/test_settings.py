"""[tool.dsdoctor] and dsdoctor.toml."""

from pathlib import Path

import pytest

from dsdoctor.model import Severity
from dsdoctor.settings import Settings, SettingsError, load_settings, parse

TABLE = """
fail-on = "warning"
nvme = "/data"
purpose = "offload-nvme"
python = "/env/bin/python"
ignore = [{code = "net001", reason = "one node"}]
severity = {cuda003 = "error"}
"""


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "dsdoctor.toml").write_text(TABLE)
    assert load_settings(tmp_path) == Settings(
        ignored={"NET001": "one node"},
        severities={"CUDA003": Severity.ERROR},
        fail_on="warning",
        nvme="/data",
        purpose="offload-nvme",
        python="/env/bin/python",
        source=str(tmp_path / "dsdoctor.toml"),
    )


def test_the_nearest_folder_with_settings_wins(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.dsdoctor]\nnvme = "/far"\n')
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\n")
    assert load_settings(inner).nvme == "/far"
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.dsdoctor]\nnvme = "/near"\n')
    assert load_settings(inner).nvme == "/near"


def test_dsdoctor_toml_stands_before_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.dsdoctor]\nnvme = "/one"\n')
    (tmp_path / "dsdoctor.toml").write_text('nvme = "/two"\n')
    assert load_settings(tmp_path).nvme == "/two"


@pytest.mark.parametrize("text", ["broken = [", "tool = 3", "[tool]\ndsdoctor = 3", "\xff"])
def test_a_pyproject_that_is_no_ours_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(text.encode("latin-1"))
    (tmp_path / "sub").mkdir()
    assert load_settings(tmp_path / "sub").nvme is None


@pytest.mark.parametrize("data", [b"nvme = ", b"\xff\xfe"])
def test_a_broken_dsdoctor_toml_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "dsdoctor.toml").write_bytes(data)
    with pytest.raises(SettingsError, match=r"dsdoctor\.toml: "):
        load_settings(tmp_path)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"ignored": []}, "'ignored' is no setting; did you mean 'ignore'"),
        ({"xyz": 1}, "'xyz' is no setting$"),
        ({"fail-on": "all"}, "fail-on is 'all'; it takes one of error, warning, never"),
        ({"fail-on": ["error"]}, "fail-on is"),
        ({"purpose": "gaming"}, "purpose is 'gaming'; it takes one of auto, ci-cpu"),
        ({"nvme": 3}, "nvme is 3; it takes a text"),
        ({"ignore": {"NET001": "x"}}, "ignore is a list"),
        ({"ignore": [{"code": "NET001"}]}, "ignoring 'NET001' needs a reason"),
        ({"ignore": [{"code": "NET001", "reason": "  "}]}, "ignoring 'NET001' needs a reason"),
        ({"ignore": ["NET001"]}, "ignoring 'NET001' needs a reason"),
        ({"severity": ["x"]}, "severity is a table"),
        ({"severity": {"NET001": "fatal"}}, "severity of NET001 is 'fatal'; it takes one of info, warning, error"),
        ({"severity": {"NET001": ["error"]}}, "severity of NET001"),
    ],
)
def test_a_wrong_table_names_file_key_and_what_it_takes(table: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=f"^x.toml: .*{words}"):
        parse(table, "x.toml")


def test_no_settings_is_fine() -> None:
    assert parse({}, "x.toml") == Settings(source="x.toml")


def test_a_relative_place_counts_from_the_folder_of_the_file(tmp_path: Path) -> None:
    inner = tmp_path / "src"
    inner.mkdir()
    (tmp_path / "dsdoctor.toml").write_text('nvme = "swap"\npython = ".venv"\n')
    found = load_settings(inner)
    assert (found.nvme, found.python) == (str(tmp_path / "swap"), str(tmp_path / ".venv"))
    (tmp_path / "dsdoctor.toml").write_text('python = "python3.11"\n')
    assert load_settings(inner).python == "python3.11"


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "dsdoctor.toml").write_bytes(b'\xef\xbb\xbfnvme = "/data"\n')
    assert load_settings(tmp_path).nvme == "/data"


def test_a_misspelt_part_of_an_ignore_entry_is_named() -> None:
    with pytest.raises(SettingsError, match="'reasn' is no part of an ignore entry; did you mean 'reason'"):
        parse({"ignore": [{"code": "NET001", "reasn": "x"}]}, "x.toml")
