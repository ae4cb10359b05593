"""The catalogue is fresh, and every check keeps the promises that its author made."""

import inspect
import re
from pathlib import Path

import pytest

from dsdoctor.knowledge import ANY_CAUSE, LAYERS, Knowledge
from dsdoctor.model import Check
from dsdoctor.registry import load
from dsdoctor.render.catalogue import FAMILIES, refreshed

ROOT = Path(__file__).parents[2]
KNOWLEDGE: Knowledge = load()


def test_readme_catalogue_is_fresh() -> None:
    text = (ROOT / "checks/README.md").read_text("utf-8")
    assert text == refreshed(text, KNOWLEDGE), "run `python -m dsdoctor.render.catalogue`"


def test_there_are_sixty_checks_over_all_families() -> None:
    assert len(KNOWLEDGE.checks) >= 60
    assert {c.family for c in KNOWLEDGE.checks} == set(FAMILIES)
    assert not KNOWLEDGE.problems


@pytest.mark.parametrize("check", KNOWLEDGE.checks, ids=lambda c: c.code)
def test_check_names_known_causes_and_explains_itself(check: Check) -> None:
    may_find = "yield" in inspect.getsource(check.run).replace("yield from ()", "")
    assert check.causes or not may_find, f"{check.code} finds something and names no cause for it"
    assert set(check.causes) <= {*KNOWLEDGE.causes, ANY_CAUSE}, f"{check.code} names causes that no table knows"
    assert len(check.rationale) > 40
    assert not check.title.endswith(".")


@pytest.mark.parametrize("check", KNOWLEDGE.checks, ids=lambda c: c.code)
def test_check_has_a_test_that_names_it(check: Check) -> None:
    tests = "\n".join(p.read_text("utf-8") for p in (ROOT / "tests/checks").glob("test_*.py"))
    name = check.run.__name__
    assert re.search(rf"\b({check.code}|{name})\b", tests), f"no test names {check.code} ({name})"


def test_causes_are_well_formed() -> None:
    for slug, info in KNOWLEDGE.causes.items():
        assert info.layer in LAYERS, slug
        assert set(info.explains) <= set(KNOWLEDGE.causes), slug
        assert info.title
        assert info.remedy


def test_abilities_that_capabilities_require_are_guarded_by_some_check() -> None:
    from dsdoctor.testing import machine

    guarded = {ability for check in KNOWLEDGE.checks for ability in check.guards}
    for spec in KNOWLEDGE.capabilities:
        plain = {name.partition(":")[0] for name in spec.requires(machine()) if not name.startswith("op:")}
        assert plain <= guarded, spec.name


def test_abilities_that_ops_need_are_guarded_by_some_check() -> None:
    from dsdoctor_checks.tables import table

    guarded = {ability for check in KNOWLEDGE.checks for ability in check.guards}
    for name, row in table("ops")["op"].items():
        needs = {*row["needs"], *row.get("cuda", ()), *row.get("cpu", ()), *row.get("before", {}).get("cuda", ())}
        assert needs <= guarded, name
