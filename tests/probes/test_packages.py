"""Distributions in constructed site-packages folders."""

import json
from pathlib import Path

import pytest

from dsdoctor.facts import Packages, Python
from dsdoctor.probes import ProbeFailed, packages, torch
from dsdoctor.probes.system import System


class Site:
    """A site-packages folder that a test fills."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.cwd = root, root / "site-packages", root / "work"
        self.folder.mkdir()
        self.cwd.mkdir()
        self.extra: tuple[str, ...] = ()

    def write(self, name: str, data: bytes | str = b"") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def install(self, name: str, version: str, files: dict[str, bytes] | None = None, tail: str = "\n") -> str:
        info = f"{name}-{version}.dist-info"
        self.write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: other\n")
        rows = [f"{file},sha256=x,{len(data)}" for file, data in (files or {}).items()]
        self.write(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,"]) + tail)
        for file, data in (files or {}).items():
            self.write(file, data)
        return info

    @property
    def python(self) -> Python:
        return Python(
            executable="p", chosen_because="-", version="3.11.7", prefix="/v", base_prefix="/usr", cwd=str(self.cwd),
            site_packages=(str(self.folder),), sys_path_extra=self.extra,
        )  # fmt: skip

    def ask(self) -> Packages:
        return packages.probe(System(env={}), self.python)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


TORCH = {"torch/__init__.py": b"import os\n", "torch/version.py": b"x = 1\n", "torch/lib/libtorch.so": b"E" * 500}


def test_healthy(site: Site) -> None:
    info = site.install("torch", "2.6.0+cu124", TORCH)
    site.write(f"{info}/INSTALLER", "uv\n")
    found = site.ask()
    torch_ = found.distributions["torch"]
    assert (torch_.version, torch_.installer, torch_.editable) == ("2.6.0+cu124", "uv", None)
    assert (found.integrity_checked, found.damaged) == (("torch",), ())
    assert (found.duplicates, found.leftovers, found.shadows, found.namespace_only) == ({}, (), (), ())


def test_damage(site: Site) -> None:
    site.install("torch", "2.6.0", TORCH)
    (site.folder / "torch/version.py").unlink()
    (site.folder / "torch/__init__.py").write_bytes(b"")
    (site.folder / "torch/lib/libtorch.so").write_bytes(b"E" * 200)
    found = site.ask().damaged
    assert {(d.file, d.kind, d.expected_bytes, d.actual_bytes) for d in found} == {
        ("torch/lib/libtorch.so", "size", 500, 200),
        ("torch/__init__.py", "empty", 10, 0),
        ("torch/version.py", "missing", 6, None),
    }


@pytest.mark.parametrize("tail", ["\ntorch/lib/libtorch.so,sha256=x,50", "\n\0\0\0\0", "\ntorch/li", "\n\xff\xfe"])
def test_record_that_was_cut_off_accuses_nobody(site: Site, tail: str) -> None:
    site.install("torch", "2.6.0", TORCH, tail)
    assert site.ask().damaged == ()


def test_conda_and_editable_are_not_held_against_record(site: Site) -> None:
    info = site.install("torch", "2.6.0", TORCH)
    site.write(f"{info}/INSTALLER", "conda\n")
    (site.folder / "torch/lib/libtorch.so").write_bytes(b"patched")
    found = site.ask()
    assert (found.integrity_checked, found.damaged) == ((), ())


def test_two_versions_and_a_leftover(site: Site) -> None:
    site.install("torch", "2.5.1")
    site.install("torch", "2.6.0", TORCH)
    site.write("~orch/__init__.py")
    found = site.ask()
    assert found.duplicates == {"torch": ("2.5.1", "2.6.0")}
    assert found.leftovers == (str(site.folder / "~orch"),)


@pytest.mark.parametrize("text", ["", "Metadata-Version: 2.1\nName: deepsp", None, b"\xff\xfe\0"])
def test_metadata_lost_or_cut_off(site: Site, text: str | bytes | None) -> None:
    (site.folder / "deepspeed-0.16.4.dist-info").mkdir()
    if text is not None:
        site.write("deepspeed-0.16.4.dist-info/METADATA", text)
    assert "0.16.4" in [d.version for d in site.ask().distributions.values()]


def test_folder_without_metadata(site: Site) -> None:
    site.write("deepspeed/__init__.py")
    assert site.ask().namespace_only == (str(site.folder / "deepspeed"),)


def test_stray_files_shadow(site: Site) -> None:
    site.install("torch", "2.6.0", TORCH)
    (site.cwd / "torch.py").write_text("")
    (site.cwd / "deepspeed").mkdir()
    (site.cwd / "deepspeed/__init__.py").write_text("")
    (site.cwd / "numpy").mkdir()  # no __init__.py: the installed one wins
    assert {(s.module, Path(s.path).name) for s in site.ask().shadows} == {
        ("torch", "torch.py"),
        ("deepspeed", "deepspeed"),
    }


@pytest.mark.parametrize(
    "origin", ["[]", '"x"', "{", '{"dir_info": "yes"}', '{"dir_info": {}}', '{"dir_info": {"editable": false}}']
)
def test_origin_that_names_no_source(site: Site, origin: str) -> None:
    site.write(f"{site.install('deepspeed', '0.16.4')}/direct_url.json", origin)
    assert site.ask().distributions["deepspeed"].editable is None


def test_editable_source_is_no_stray_file(site: Site) -> None:
    source = site.root / "my code"
    (source / "deepspeed").mkdir(parents=True)
    (source / "deepspeed/__init__.py").write_text("")
    origin = {"url": source.as_uri(), "dir_info": {"editable": True}}
    site.write(f"{site.install('deepspeed', '0.16.4')}/direct_url.json", json.dumps(origin))
    site.cwd, site.extra = source, (str(source),)
    found = site.ask()
    assert found.distributions["deepspeed"].editable == str(source)
    assert found.shadows == ()


def test_torch_of_an_editable_install(site: Site) -> None:
    source = site.root / "pytorch"
    (source / "torch").mkdir(parents=True)
    (source / "torch/version.py").write_text("__version__ = '2.8.0a0+git1'\ncuda: str | None = '12.8'\nhip = None\n")
    origin = {"url": source.as_uri(), "dir_info": {"editable": True}}
    site.write(f"{site.install('torch', '2.8.0a0')}/direct_url.json", json.dumps(origin))
    found = torch.probe(System(env={}), site.python, site.ask())
    assert (found.version, found.cuda, found.hip, found.path) == ("2.8.0a0+git1", "12.8", None, str(source / "torch"))


def test_torch_with_a_destroyed_version_file_or_none_at_all(site: Site) -> None:
    site.install("torch", "2.6.0", {"torch/version.py": b"\0\0\0"})
    assert torch.probe(System(env={}), site.python, site.ask()).version == "2.6.0"
    with pytest.raises(ProbeFailed, match="not installed"):
        torch.probe(System(env={}), site.python, Packages())


def test_two_versions_are_not_held_against_either_record(site: Site) -> None:
    site.install("torch", "2.5.1", {**TORCH, "torch/lib/libtorch.so": b"old"})
    site.install("torch", "2.6.0", TORCH)
    found = site.ask()
    assert (found.integrity_checked, found.damaged) == ((), ())


def test_pythonpath_comes_before_site_packages_and_a_pth_folder_after(site: Site) -> None:
    site.install("numpy", "2.1.0")
    for name, version in (("early", "1.24.0"), ("late", "1.26.0")):
        (site.root / name / f"numpy-{version}.dist-info").mkdir(parents=True)
    early, late = str(site.root / "early"), str(site.root / "late")
    site.extra = (early, late)
    assert packages.probe(System(env={"PYTHONPATH": early}), site.python).version("numpy") == "1.24.0"
    assert packages.probe(System(env={}), site.python).version("numpy") == "2.1.0"


def test_stray_file_shadows_on_pythonpath_only(site: Site) -> None:
    stray = site.root / "stray"
    stray.mkdir()
    (stray / "torch.py").write_text("")
    site.extra = (str(stray),)
    assert packages.probe(System(env={}), site.python).shadows == ()
    found = packages.probe(System(env={"PYTHONPATH": "stray"}, cwd=str(site.root)), site.python).shadows
    assert [s.path for s in found] == [str(stray / "torch.py")]


def test_working_folder_shadows_nothing_in_safe_path_mode(site: Site) -> None:
    (site.cwd / "torch.py").write_text("")
    assert packages.probe(System(env={"PYTHONSAFEPATH": "1"}), site.python).shadows == ()
    assert len(packages.probe(System(env={}), site.python).shadows) == 1


def test_old_editable_install(site: Site) -> None:
    """`setup.py develop`: an egg-link in site-packages, the source on sys.path by a .pth file."""
    source = site.root / "DeepSpeed"
    (source / "deepspeed.egg-info").mkdir(parents=True)
    (source / "deepspeed.egg-info/PKG-INFO").write_text("Metadata-Version: 2.1\nName: deepspeed\nVersion: 0.9.5+abc\n")
    (source / "deepspeed").mkdir()
    (source / "deepspeed/__init__.py").write_text("")
    site.write("deepspeed.egg-link", f"{source}\n.")
    site.cwd, site.extra = source, (str(source),)
    found = site.ask()
    assert (found.version("deepspeed"), found.distributions["deepspeed"].editable) == ("0.9.5+abc", str(source))
    assert (found.shadows, found.namespace_only) == ((), ())


def test_many_damages_are_cut_to_the_biggest(site: Site) -> None:
    site.install("torch", "2.6.0", {f"torch/f{n}.py": b"x" * (n + 1) for n in range(80)})
    for n in range(80):
        (site.folder / f"torch/f{n}.py").unlink()
    assert [d.expected_bytes for d in site.ask().damaged] == list(range(80, 30, -1))


def test_byte_code_metadata_and_scripts_may_change(site: Site) -> None:
    files = {"deepspeed/a.py": b"1", "deepspeed/__pycache__/a.pyc": b"22", "../../bin/ds_report": b"333"}
    info = site.install("deepspeed", "0.19.8", files)
    site.write("deepspeed/__pycache__/a.pyc", b"")
    site.write("../../bin/ds_report", b"#!/elsewhere")
    site.write(f"{info}/METADATA", b"Name: deepspeed\nVersion: 0.19.8\n")
    assert site.ask().damaged == ()
