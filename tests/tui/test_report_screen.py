"""The report on the screen, as a user reads and walks through it, in three sizes of terminal."""

import pytest

from dsdoctor.model import Finding
from tests.tui import reports
from tests.tui.screen import RATIONALE, SIZES, doctor, lines, reads, text

every_size = pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40", "60x20"])
WIDE = (120, 40)


@every_size
async def test_the_first_screen_names_the_outcome_the_machine_and_the_worst_family_first(size: tuple[int, int]) -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "PROBLEMS", "1 error, 1 warning", "Linux with one NVIDIA GPU", "single-gpu", "q Quit")
        await reads(pilot, "Patient: /home/u/venv/bin/python", "▶ NET")
        families = [line for line in lines(app) if line.startswith(("▼", "▶"))]
        assert [line.split()[1] for line in families] == ["CUDA", "CXX", "MEM", "DS", "HOST", "NET"]
        assert "ERROR 1  PASSED 1" in families[0]


@every_size
async def test_enter_shows_all_about_a_failed_check(size: tuple[int, int]) -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "ERROR CUDA012")
        await pilot.press("enter")
        await reads(pilot, "CUDA012  ERROR", "nvcc is 11.8, torch was built", "V11.8.89")
        seen = text(app)
        for _ in range(3):
            await pilot.press("pagedown")
            await pilot.wait_for_scheduled_animations()
            seen += text(app)
        for part in ("nvcc of another CUDA than", "Install the CUDA 12.8", "$ sudo apt-get", "needs about 5 GB"):
            assert part in seen
        assert "declared" in seen
        assert RATIONALE.split(" ops")[0] in seen


async def test_a_narrow_terminal_shows_the_list_or_the_check_and_esc_goes_back() -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=(60, 20), notifications=True) as pilot:
        assert "Found" not in await reads(pilot, "ERROR CUDA012")
        await pilot.press("enter")
        assert "▼ CUDA" not in await reads(pilot, "Found")
        await pilot.press("escape")
        assert "Found" not in await reads(pilot, "▼ CUDA")
        await pilot.press("down", "enter")
        await reads(pilot, "CUDA013  PASSED")


async def test_a_text_that_fills_a_narrow_terminal_says_how_to_leave_it() -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=(60, 20), notifications=True) as pilot:
        assert "back to the list" not in await reads(pilot, "ERROR CUDA012")
        await pilot.press("enter")
        await reads(pilot, "Found", "Esc goes back to the list")
    wide = doctor(reports.sick())
    async with wide.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "ERROR CUDA012")
        await pilot.press("enter")
        assert "back to the list" not in await reads(pilot, "Found"), "the list is there to see"


@pytest.mark.parametrize("size", SIZES[:2])
async def test_a_row_that_is_too_long_shows_that_it_goes_on(size: tuple[int, int]) -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "ERROR CUDA012")
        row = next(line for line in lines(app) if "ERROR CUDA012" in line).partition("│")[0].rstrip()
        assert row.endswith("…")
        await pilot.resize_terminal(250, 40)
        await reads(pilot, "ERROR CUDA012")
        wide = next(line for line in lines(app) if "ERROR CUDA012" in line).partition("│")[0].rstrip()
        assert len(wide) > len(row)


async def test_what_was_copied_is_named_and_hides_nothing() -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=(60, 20), notifications=True) as pilot:
        await reads(pilot, "ERROR CUDA012")
        await pilot.press("2", "c", "c")
        said = await reads(pilot, "commands copied: ")
        assert said.count("copied") == 1


async def test_a_wide_terminal_follows_the_cursor() -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "CUDA012  ERROR")
        await pilot.press("down")
        await reads(pilot, "CUDA013  PASSED")
        await pilot.press("down")
        await reads(pilot, "Enter opens and closes a family")


@pytest.mark.parametrize(
    ("search", "shown"),
    [
        ("unknown", ["DS002  UNKNOWN", "gave no answer within 60 s", "Waits for: deepspeed_live"]),
        ("NET001", ["NET001  N/A", "Reason: one GPU"]),
        ("crashed", ["MEM001  CRASHED", "ZeroDivisionError: division by zero"]),
    ],
)
async def test_an_undecided_check_says_why(search: str, shown: list[str]) -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        await pilot.press("slash", *search, "enter", "down")
        await reads(pilot, *shown)


@every_size
async def test_a_healthy_machine_says_so_in_one_line_of_the_plan(size: tuple[int, int]) -> None:
    app = doctor(reports.healthy())
    async with app.run_test(size=size, notifications=True) as pilot:
        assert "ERROR" not in await reads(pilot, "HEALTHY")
        await pilot.press("2")
        await reads(pilot, "Nothing to do. Nothing is wrong: 4 checks passed.")


@every_size
async def test_an_undecided_machine_says_what_the_checks_wait_for(size: tuple[int, int]) -> None:
    app = doctor(reports.unknown_heavy())
    async with app.run_test(size=size, notifications=True) as pilot:
        assert "PASSED 20" not in await reads(pilot, "INCOMPLETE", "UNKNOWN 20")
        await pilot.press("2")
        screen = await reads(pilot, "20 undecided: the patient did not answer within 60 s", "TORCH020")
        assert "Nothing to do" not in screen


@every_size
async def test_the_plan_is_numbered_and_its_commands_are_copied(size: tuple[int, int]) -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        await pilot.press("2")
        await reads(pilot, "1. ERROR Install the CUDA", "2. WARNING Install ninja")
        await pilot.press("c")
        await reads(pilot, "2 commands copied")
        assert app.clipboard == f"{reports.INSTALL_NVCC}\n{reports.SET_HOME}\n"
        await pilot.press("down", "c")
        await reads(pilot, "1 command copied")
        assert app.clipboard == f"{reports.INSTALL_NINJA}\n"
        await pilot.press("C")
        await reads(pilot, "3 commands copied")
        assert app.clipboard.splitlines() == [reports.INSTALL_NVCC, reports.SET_HOME, reports.INSTALL_NINJA]


@every_size
async def test_a_step_shows_what_to_type_why_and_what_proves_it(size: tuple[int, int]) -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        await pilot.press("2", "enter")
        await reads(pilot, "Step 1  ERROR  careful", "$ sudo apt-get", "$ $CUDA_HOME/bin/nvcc --version", "needs about")
        await reads(pilot, "Why: nvcc is 11.8")


async def test_copying_where_there_is_no_command_says_so() -> None:
    app = doctor(reports.healthy())
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("c")
        await reads(pilot, "There is no command to copy here.")
        assert app.clipboard == ""


@every_size
async def test_what_can_run_shows_state_proof_and_blocker_and_enter_goes_there(size: tuple[int, int]) -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        await pilot.press("3")
        await reads(
            pilot, "Can: ZeRO 1 to 3, offload", "BLOCKED  Fused Adam", "UNKNOWN  HF Trainer", "N/A      Several"
        )
        ready = next(line for line in lines(app) if "READY    ZeRO stage 2" in line)
        assert "probed" in ready
        await pilot.press("down")
        await reads(pilot, "Fused Adam: blocked by CUDA012, CXX004. Enter")
        await pilot.press("enter", "enter")
        await reads(pilot, "CUDA012  ERROR")


@every_size
async def test_facts_can_be_opened_and_missing_ones_say_why(size: tuple[int, int]) -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        await pilot.press("5")
        await reads(pilot, "origin: this machine", "MISSING not-examined: cpu was not examined")
        await pilot.press("down", "down", "down", "down", "enter")
        await reads(pilot, "kernel: 6.1.0", "libc: not known")
        await pilot.press("end")
        await reads(pilot, "smoke  MISSING not-asked: no smoke run was asked for")


async def test_the_filter_leaves_failed_checks_and_comes_off_again() -> None:
    app = doctor(reports.huge())
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "PASSED AAA001")
        await pilot.press("f")
        screen = await reads(pilot, "40 of 200 checks (failed only)", "ERROR BBB020")
        assert "PASSED" not in screen
        await pilot.press("f")
        await reads(pilot, "PASSED AAA001")


async def test_the_search_narrows_while_typing_and_esc_ends_it() -> None:
    app = doctor(reports.huge())
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "AAA000")
        await pilot.press("slash", *"part 199")
        screen = await reads(pilot, "1 of 200 checks (search: part 199)", "JJJ199")
        assert "AAA000" not in screen
        await pilot.press("enter", "escape")
        assert "search:" not in await reads(pilot, "AAA000")


async def test_letters_typed_into_the_search_are_not_commands() -> None:
    app = doctor(reports.huge())
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "AAA000")
        await pilot.press("slash", *"qRc4?")
        await reads(pilot, "0 of 200 checks (search: qRc4?)", "No check is left", "Esc ends the search")
        assert app.is_running


async def test_the_end_of_a_long_list_is_reached_by_keys() -> None:
    app = doctor(reports.huge())
    async with app.run_test(size=(60, 20), notifications=True) as pilot:
        await reads(pilot, "AAA000")
        await pilot.press("end", "enter")
        await reads(pilot, "part 199 is sound", "JJJ199  PASSED")


async def test_the_mouse_opens_a_tab_and_a_check() -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        row = next(number for number, line in enumerate(lines(app)) if "CXX004" in line)
        await pilot.click(offset=(8, row))
        await reads(pilot, "CXX004  WARNING")
        await pilot.click(offset=(13, 3))
        await reads(pilot, "Step 1")
        await pilot.press("down", "down")
        await reads(pilot, "Step 2")


@every_size
async def test_help_names_every_key(size: tuple[int, int]) -> None:
    app = doctor(reports.sick())
    async with app.run_test(size=size, notifications=True) as pilot:
        await reads(pilot, "CUDA012")
        await pilot.press("question_mark")
        await reads(pilot, "Keys", "1 to 7", "smoke runs")
        seen = text(app)
        for _ in range(3):
            await pilot.press("pagedown")
            await pilot.wait_for_scheduled_animations()
            seen += text(app)
        for part in ("examine the whole machine anew", "copy the commands of all steps", "OSC 52"):
            assert part in seen
        await pilot.press("escape")
        await reads(pilot, "▼ CUDA")


@every_size
async def test_text_of_the_machine_is_shown_as_it_is_and_moves_no_terminal(size: tuple[int, int]) -> None:
    app = doctor(reports.markup())
    seen = ""
    async with app.run_test(size=size, notifications=True) as pilot:
        seen += await reads(pilot, "1 error [b]here[/b]", "Linux [/odd]", "/home/[me]/python")
        await pilot.press("enter")
        seen += await reads(pilot, "[red]/tmp/[/red] is", "full [link=x]", "df [/tmp]: [100%] used", "disk-[bold]full")
        await pilot.press("c")
        await reads(pilot, "1 command copied")
        assert app.clipboard == "rm -r '/tmp/[old]'\n"
        await pilot.press("2", "enter")
        seen += await reads(pilot, "Remove [old] files", "$ rm -r '/tmp/[old]'")
        await pilot.press("3")
        seen += await reads(pilot, "Can: [all]", "Offload to [nvme]", "[not] known [/b]")
        await pilot.press("slash", *"[/red]")
        seen += await reads(pilot, "1 of 1 checks (search: [/red])")
    assert not set(seen) & set("\x1b\x07\u202e")


async def test_facts_that_look_like_markup_are_shown_as_they_are() -> None:
    app = doctor(reports.markup())
    async with app.run_test(size=(120, 50), notifications=True) as pilot:
        await reads(pilot, "MEM001")
        await pilot.press("5")
        await reads(pilot, "environment")
        row = next(number for number, line in enumerate(lines(app)) if "▶ environment" in line)
        await pilot.click(offset=(6, row))
        await reads(pilot, "▶ variables  (1)")
        await pilot.press("down", "enter")
        await reads(pilot, "PS1: [\\u[/red]")


async def test_without_colours_every_state_is_still_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = doctor(reports.sick())
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "PROBLEMS", "ERROR CUDA012", "WARNING CXX004", "CRASHED MEM001", "UNKNOWN 1", "N/A 1")
        for strip in app.screen._compositor.render_strips():
            for segment in strip:
                ink = segment.style.color.triplet if segment.style and segment.style.color else None
                assert ink is None or ink.red == ink.green == ink.blue


async def test_an_ignored_failure_is_shown_as_ignored_with_the_reason() -> None:
    ignored = reports.failed(
        "GPU003", "the GPU is not shared", Finding(message="2 processes", cause="gpu-busy"), ignored="known"
    )
    app = doctor(reports.report((ignored, *reports.PASSING)))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "IGNORED 1")
        await pilot.press("slash", *"GPU003", "enter", "down")
        await reads(pilot, "GPU003  IGNORED", "Ignored because: known", "2 processes")


async def test_a_report_of_some_checks_only_says_why_nothing_can_run_is_decided() -> None:
    app = doctor(reports.report(reports.PASSING[:1]))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await reads(pilot, "HEALTHY")
        await pilot.press("3")
        await reads(pilot, "what can run here was not decided")
