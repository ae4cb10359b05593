"""Looking again at one check from the report's screen."""

from dsdoctor.model import Report, Status
from tests.tui import reports
from tests.tui.screen import doctor, reads


async def test_a_recheck_shows_what_changed_and_keeps_the_place() -> None:
    asked: list[tuple[Status, str]] = []

    def recheck(before: Report, code: str) -> Report:
        asked.append((before.verdicts[0].status, code))
        return reports.healthy()

    app = doctor(reports.sick(), recheck=recheck)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "ERROR CUDA012")
        await pilot.press("r")
        await reads(pilot, "CUDA012 was ERROR, is now PASSED", "HEALTHY", "CUDA012  PASSED")
        assert asked == [(Status.FAILED, "CUDA012")]


async def test_a_recheck_from_the_plan_looks_at_what_the_step_clears() -> None:
    app = doctor(reports.sick(), recheck=lambda before, code: before)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        await pilot.press("2", "down", "r")
        await reads(pilot, "CXX004 is still WARNING", "Step 2")


async def test_a_recheck_that_fails_leaves_the_report_as_it_was() -> None:
    def recheck(before: Report, code: str) -> Report:
        raise ValueError("no [luck]")

    app = doctor(reports.sick(), recheck=recheck)
    async with app.run_test(size=(160, 24), notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        await pilot.press("r")
        await reads(pilot, "CUDA012 could not be looked at again", "ValueError: no [luck]", "ERROR CUDA012")


async def test_a_family_cannot_be_rechecked_and_that_is_said() -> None:
    app = doctor(reports.sick(), recheck=lambda before, code: before)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        await pilot.press("home", "r")
        await reads(pilot, "Select a check first")
