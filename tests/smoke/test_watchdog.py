"""How long ranks may be silent: as long as the most patient of their phases."""

from dsdoctor.smoke.watchdog import building, patience_s


def test_the_most_patient_phase_decides() -> None:
    assert patience_s(["rendezvous", "import torch"]) == patience_s(["import torch"]) > patience_s(["rendezvous"])
    assert patience_s(["first step", "steps"]) == patience_s(["first step"]) > patience_s(["steps"])


def test_without_a_live_rank_or_before_its_first_word_patience_is_short_too() -> None:
    assert 0 < patience_s([]) <= patience_s(["import torch"])
    assert 0 < patience_s([None]) <= patience_s(["import torch"])


def test_a_stale_op_is_compiled_while_it_is_loaded() -> None:
    assert building("compile cpu_adam")
    assert building("load cpu_adam")
    assert not building("initialize")
    assert not building(None)
