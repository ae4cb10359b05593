"""What verdicts leave of abilities: taken by errors, doubted where a check is undecided or nobody looked."""

from collections.abc import Iterator

from dsdoctor import healthy as h
from dsdoctor.abilities import Abilities
from dsdoctor.check import check, not_applicable, unknown
from dsdoctor.facts import Host, OpBuilders, Snapshot, TorchLive, Unavailable
from dsdoctor.judge import judge
from dsdoctor.model import Check, Finding, Proof, Severity

STATIC = Unavailable(kind="not-examined", detail="--static")


def of(*checks: Check, snapshot: Snapshot | None = None) -> Abilities:
    return Abilities(checks, judge(checks, snapshot or h.healthy()))


def failing(code: str, severity: Severity = Severity.ERROR, own: Severity | None = None, *guards: str) -> Check:
    def look(host: Host) -> Iterator[Finding]:
        """Say why."""
        yield Finding(message=f"{code} is sick", cause="bad", severity=own)

    return check(code, "All is well", causes=["bad"], severity=severity, guards=guards or ("build",))(look)


@check("PY001", "It is well", causes=(), guards=["build"])
def passing(host: Host) -> Iterator[Finding]:
    """Say why."""
    yield from ()


@check("PY002", "It is tried", causes=(), guards=["build"])
def tried(builders: OpBuilders) -> Iterator[Finding]:
    """Say why."""
    yield from ()


@check("PY003", "It is live", causes=(), guards=["build"])
def live(torch: TorchLive) -> Iterator[Finding]:
    """Say why."""
    yield from ()


@check("PY004", "It is dim", causes=(), guards=["build"])
def dim(host: Host) -> Iterator[Finding]:
    """Say why."""
    unknown("the lamp is out")
    yield


@check("PY005", "It is elsewhere", causes=(), guards=["build"])
def elsewhere(host: Host) -> Iterator[Finding]:
    """Say why."""
    not_applicable("another machine")
    yield


@check("PY006", "It is mildly dim", causes=(), guards=["build"], severity=Severity.WARNING)
def mildly_dim(host: Host) -> Iterator[Finding]:
    """Say why."""
    unknown("the lamp flickers")
    yield


def codes(abilities: Abilities, *required: str) -> list[str]:
    return [verdict.code for verdict, _ in abilities.taken(required)]


def test_an_error_takes_what_its_check_guards_and_nothing_else() -> None:
    abilities = of(failing("CXX001"), passing)
    assert codes(abilities, "build") == ["CXX001"]
    assert codes(abilities, "gpu") == []


def test_a_check_that_guards_two_abilities_is_counted_once() -> None:
    assert codes(of(failing("CXX001", Severity.ERROR, None, "build", "gpu")), "build", "gpu") == ["CXX001"]


def test_a_warning_takes_nothing() -> None:
    assert codes(of(failing("CXX001", Severity.WARNING)), "build") == []
    assert codes(of(failing("CXX001", Severity.ERROR, Severity.WARNING)), "build") == []


def test_a_note_of_an_error_check_takes_all_the_same_for_it_only_says_that_nobody_asked() -> None:
    assert codes(of(failing("CXX001", Severity.ERROR, Severity.INFO)), "build") == ["CXX001"]
    assert codes(of(failing("CXX001", Severity.INFO)), "build") == []


def test_all_findings_of_an_ability_however_mild() -> None:
    found = of(failing("CXX001", Severity.INFO), failing("CXX002", Severity.WARNING)).findings("build")
    assert [verdict.code for verdict, _ in found] == ["CXX001", "CXX002"]


def test_passing_leaves_no_doubt_and_silence_does() -> None:
    assert of(passing).doubt(("build",)) is None
    assert "build" in str(of(elsewhere).doubt(("build",)))
    assert "gpu" in str(of(passing).doubt(("build", "gpu")))
    assert of().doubt(()) is None


def test_an_undecided_error_check_is_a_doubt_and_a_mild_one_is_not() -> None:
    doubt = of(passing, dim).doubt(("build",))
    assert doubt is not None
    assert "PY004" in doubt
    assert "the lamp is out" in doubt
    assert of(passing, mildly_dim).doubt(("build",)) is None


def test_a_check_that_waits_for_what_was_left_out_is_no_doubt_of_a_prediction() -> None:
    static = h.healthy(torch_live=STATIC)
    abilities = of(passing, live, snapshot=static)
    assert "PY003" in str(abilities.doubt(("build",)))
    assert abilities.doubt(("build",), untold={"torch_live"}) is None
    assert "PY003" in str(abilities.doubt(("build",), untold={"smoke"}))
    assert of(live, snapshot=static).doubt(("build",), untold={"torch_live"}), "nothing has looked then"


def test_the_proof_is_the_best_with_which_a_check_passed() -> None:
    assert of(passing).proof("build") is Proof.DECLARED
    assert of(passing, tried).proof("build") is Proof.PROBED
    assert of(failing("CXX001")).proof("build") is Proof.DECLARED
    assert of(passing).proof("gpu") is Proof.DECLARED


def of_runs(*subjects: str | None, severity: Severity = Severity.ERROR) -> Check:
    def look(host: Host) -> Iterator[Finding]:
        """Say why."""
        for subject in subjects:
            yield Finding(message=f"{subject} fell", cause="bad", subject=subject)

    return check("RUN001", "Runs end", causes=["bad"], severity=severity, guards=["run"])(look)


def test_an_ability_of_one_thing_is_taken_by_findings_about_it_alone() -> None:
    abilities = of(of_runs("zero2", "zero1, zero3"))
    assert codes(abilities, "run:zero2") == ["RUN001"]
    assert [f.subject for _, f in abilities.taken(("run:zero3",))] == ["zero1, zero3"]
    assert codes(abilities, "run:moe") == []
    assert codes(abilities, "run:zero") == [], "part of a name is another name"
    assert codes(of(of_runs("zero2", severity=Severity.WARNING)), "run:zero2") == []
    assert codes(of(of_runs(None)), "run:zero2") == []


def test_that_nobody_ran_a_thing_is_no_doubt() -> None:
    assert of(passing).doubt(("build", "run:zero2")) is None
    assert of(passing, of_runs("zero2")).doubt(("build", "run:zero2")) is None
