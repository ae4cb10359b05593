"""The report as one JSON document, and the JSON Schema that it validates against."""

from typing import Any

import msgspec

from dsdoctor.model import REPORT_SCHEMA_VERSION, Report


def render(report: Report) -> str:
    """The whole report, indented, in a stable order."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode("utf-8") + "\n"


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the document that ``render`` writes."""
    (root,), definitions = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dsdoctor:report:{REPORT_SCHEMA_VERSION}",
        "title": "dsdoctor report",
        **root,
        "$defs": definitions,
    }
