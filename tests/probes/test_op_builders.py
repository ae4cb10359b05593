"""What the patient's builders say of themselves, and what is left when they misbehave."""

from pathlib import Path

import pytest

from dsdoctor.facts import DsReport, OpBuilder, OpBuilders, Unavailable
from dsdoctor.probes import patient as live_probe
from dsdoctor.probes.patient import Live
from tests.probes.fake_patient import Patient


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path)


def ask(patient: Patient, **env: str) -> Live:
    live = live_probe.probe(patient.system(**env), patient.python, 60.0)
    assert isinstance(live.ds_report, DsReport), live.ds_report  # whatever the builders do, ds_report is there
    return live


def asked(patient: Patient, methods: dict[str, str], **env: str) -> dict[str, OpBuilder]:
    found = ask(patient.builders(dict.fromkeys(methods, "pass"), methods), **env).op_builders
    assert isinstance(found, OpBuilders), found
    assert found.accelerator == "cpu"
    return {b.name: b for b in found.builders}


def test_builders_are_asked_for_what_they_need(patient: Patient) -> None:
    (patient.folder / "here.cpp").touch()
    methods = {
        "aio": f"def sources(self): return ['{patient.folder}/here.cpp', 'gone.cpp', '']\n"
        "def extra_ldflags(self): return ['-laio', '-L/x', '-lcurand']\n",
        "plain": "",
    }
    found = asked(patient, methods)
    assert found["aio"].sources == (f"{patient.folder}/here.cpp", "gone.cpp")
    assert found["aio"].missing_sources == ("gone.cpp",)
    assert found["aio"].libraries == ("aio", "curand")
    assert (found["plain"].sources, found["plain"].error, found["plain"].cuda) == ((), None, False)


def test_one_that_raises_costs_no_other(patient: Patient) -> None:
    methods = {
        "odd": "def sources(self): raise RuntimeError('no sources \\udcff')",
        "needy": "def extra_ldflags(self): import dskernels",
        "leaver": "def include_paths(self): raise SystemExit('bye')",
        "mute": "def sources(self):\n    class E(Exception): __str__ = None\n    raise E()",
        "wrong": "def sources(self): return None",
        "wrong_too": "def extra_ldflags(self): return [3]",
        "plain": "",
    }
    found = asked(patient, methods)
    assert (found["odd"].error or "").startswith("RuntimeError: no sources")
    assert found["needy"].error == "ModuleNotFoundError: No module named 'dskernels'"
    assert found["leaver"].error == "SystemExit: bye"
    assert all(found[name].error for name in ("mute", "wrong", "wrong_too"))
    assert found["plain"].error is None


def test_the_architectures_that_a_filter_leaves(patient: Patient) -> None:
    keep = "def filter_ccs(self, ccs): return [cc.split('.') for cc in ccs if float(cc) >= 8]\n"
    fails = "def filter_ccs(self, ccs): raise ValueError('sm_9.0a')\n"
    patient.builders({"keeps": "pass", "fails": "pass", "host": "pass"}, {"keeps": keep, "fails": fails})
    module = patient.site / "deepspeed" / "ops" / "op_builder" / "__init__.py"
    text = module.read_text().replace("Builder_keeps(OpBuilder)", "Builder_keeps(CUDAOpBuilder)")
    module.write_text(text.replace("Builder_fails(OpBuilder)", "Builder_fails(CUDAOpBuilder)"))
    found = ask(patient, TORCH_CUDA_ARCH_LIST="7.0 9.0;8.0").op_builders
    assert isinstance(found, OpBuilders)
    told = {b.name: (b.cuda, b.architectures) for b in found.builders}
    assert told == {"keeps": (True, ("8.0", "9.0")), "fails": (True, None), "host": (False, None)}


def test_a_deepspeed_without_that_layout_is_one_sentence(patient: Patient) -> None:
    module = patient.builders({"plain": "pass"}).site / "deepspeed" / "ops" / "op_builder"
    (module / "__init__.py").write_text((module / "__init__.py").read_text().replace(", CUDAOpBuilder", ""))
    source = (module / "builder" / "__init__.py").read_text()
    (module / "builder" / "__init__.py").write_text(source.replace("class CUDAOpBuilder(OpBuilder): pass\n", ""))
    found = ask(patient).op_builders
    assert isinstance(found, Unavailable)
    assert found.kind == "failed"
    assert found.detail.startswith("asking the op builders raised AttributeError: ")
    assert "CUDAOpBuilder" in found.detail
    assert "\n" not in found.detail


@pytest.mark.parametrize(
    ("sources", "kind", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "failed", "asking the op builders died of SIGSEGV"),
        ("os._exit(4)", "failed", "asking the op builders ended the process with exit code 4"),
        ("time.sleep(600)", "timed-out", "asking the op builders gave no answer within"),
    ],
)
def test_one_that_takes_the_process_with_it(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, sources: str, kind: str, said: str
) -> None:
    monkeypatch.setattr(live_probe, "STALL_S", 2.0)
    patient.builders({"sick": "pass"}, {"sick": f"def sources(self): {sources}"})
    found = ask(patient).op_builders
    assert isinstance(found, Unavailable)
    assert found.kind == kind
    assert found.detail.startswith(said)


def test_answers_of_another_kind_cost_this_section_only(patient: Patient) -> None:
    """A name that is no word, and flags that are words of another kind."""
    odd = "class Odd(str):\n    def __getitem__(self, _): return {'a': 1}\n"
    patient.builders({"plain": "pass"}, {"plain": f"{odd}def extra_ldflags(self): return [self.Odd('-laio')]"})
    found = ask(patient).op_builders
    assert isinstance(found, Unavailable)
    assert found.detail.startswith("the op builders answer in a way that is not understood: Expected `str`")


def test_an_accelerator_whose_name_is_no_word(patient: Patient) -> None:
    module = patient.builders({"plain": "pass"}).site / "deepspeed" / "accelerator" / "__init__.py"
    module.write_text(
        module.read_text().replace(
            'lambda self: "cpu"', "lambda self: type('Name', (), {'__str__': lambda s: 'npu:0'})()"
        )
    )
    assert ask(patient).deepspeed_live.accelerator == "npu"
