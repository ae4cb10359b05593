"""Smoke runs on pages: the one with curves, and their section in the reports of `dsdoctor check`."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import msgspec
import pytest

from dsdoctor.facts import SmokeRun
from dsdoctor.model import Report
from dsdoctor.render import renderer, smoke_html
from dsdoctor.render.smoke_summary import CAUTION
from tests.render import smoke_runs
from tests.render.reports import INSTALL, mixed, passing, report

VOID = {"meta", "br"}
SHAPES = {"path", "line", "rect", "circle", "polyline"}


class Parsed(HTMLParser):
    """A page read strictly: every element that is opened is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert tag not in ("script", "img", "link", "iframe", "object", "b"), tag
        assert not [name for name in given if name.startswith("on") or name == "src"]
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if "href" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SHAPES

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def of(told: Report, *runs: SmokeRun) -> Report:
    return msgspec.structs.replace(told, facts=told.facts.replace(smoke=smoke_runs.smoke(*runs)))


def test_the_page_tells_what_the_text_tells() -> None:
    page = Parsed(smoke_html.render(of(mixed())))
    for part in (
        "zero2 ok (1.09 -> 0.72), zero3-nvme ok (1.09 -> 0.72), comm ok, moe not applicable, zero3 killed, zero1 hung",
        CAUTION, "not applicable: experts are spread over ranks", "9.6 ms (8.9-9.6)", "41 MiB in first step", "rank 1 fell first: SIGKILL",
        "the folder gave 2.0 GB/s read", "CPU-bound: CPU 92 % busy", "point_to_point", "_create_store", "Ubuntu: 1 x NVIDIA H200",
        "1 import torch, 2 import deepspeed, 3 rendezvous", INSTALL,
    ):  # fmt: skip
        assert part in page.text, part


def test_it_needs_nothing_from_elsewhere_and_its_links_lead_somewhere() -> None:
    document = smoke_html.render(of(mixed()))
    page = Parsed(document)
    assert document.startswith("<!doctype html>")
    assert not re.search("https?:|//[a-z]|@import|url\\(", document)
    assert page.links
    assert {f"#{name}" for name in page.ids} == set(page.links)
    assert "prefers-color-scheme:dark" in document


def pictures(document: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(picture) for picture in re.findall("<svg.*?</svg>", document, re.S)]


def test_curves_are_drawn_with_phases_behind_them_and_finite_numbers() -> None:
    drawn = pictures(smoke_html.render(of(report(passing), smoke_runs.zero2(), smoke_runs.hostile())))
    names = [picture.get("aria-label", "").partition(":")[0] for picture in drawn]
    assert names[:6] == ["VRAM", "GPU", "Host memory", "CPU", "Disk", "Loss"]
    assert len(names) > 6, "what is left of the odd run's curves is drawn too"
    for picture in drawn:
        for element in picture.iter():
            for value in element.attrib.values():
                assert not re.search(r"\b(nan|inf)\b", value)
            for pair in element.get("points", "").split():
                assert all(math.isfinite(float(n)) for n in pair.split(","))
    assert [t.text for t in drawn[0].iter("title")][:1] == ["import torch, 2.1 s"]


def test_a_run_without_samples_has_no_pictures_and_an_open_phase_stands_out() -> None:
    assert pictures(smoke_html.render(of(report(passing), smoke_runs.hung()))) == []
    killed = pictures(smoke_html.render(of(report(passing), smoke_runs.killed())))[0]
    (last,) = [element for element in killed.iter("rect") if element.get("class") == "band open"]
    assert "".join(last.itertext()) == "first step, did not end"


def test_hostile_text_stays_text() -> None:
    document = smoke_html.render(of(mixed(), smoke_runs.hostile(), smoke_runs.empty()))
    page = Parsed(document)
    assert "<script>alert(1)</script>" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", document)
    assert "owned" not in document


def test_without_a_run_the_page_says_why() -> None:
    assert (
        "No smoke run was made no smoke run was asked for (--smoke)" in Parsed(smoke_html.render(report(passing))).text
    )


@pytest.mark.parametrize(("form", "mark"), [("markdown", "## Smoke runs\n\n"), ("html", "<h2>Smoke runs</h2>")])
def test_the_reports_of_check_have_a_short_section(form: str, mark: str) -> None:
    document = renderer(form)(of(mixed(), smoke_runs.zero2(), smoke_runs.hung(recipe="zero3-nvme")))
    assert mark in document
    said = re.sub("<[^>]+>", " ", document).replace("&gt;", ">")
    assert "zero2 ok (1.09 -> 0.72)" in said
    assert "zero3-nvme hung" in said
    assert mark not in renderer(form)(mixed())
    assert "<script>" not in renderer(form)(of(mixed(), smoke_runs.hostile()))


def test_json_has_all_of_it() -> None:
    document = json.loads(renderer("json")(of(mixed(), smoke_runs.nvme())))
    run = document["facts"]["smoke"]["runs"][0]
    assert run["swap"]["plain_read_bytes_per_s"] == 2.0e9
    assert len(run["curves"]["seconds"]) == 40
