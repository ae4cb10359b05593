"""The report as one JSON document, and the JSON Schema that it validates against."""

import re
from typing import Any

import msgspec

from dsdoctor.model import REPORT_SCHEMA_VERSION, Report


def render(report: Report) -> str:
    """The whole report, indented, in a stable order."""
    return document(report)


def document(value: msgspec.Struct) -> str:
    """``value`` as indented JSON. Bytes of a path or variable that are no UTF-8 become U+FFFD."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(_encodable(msgspec.to_builtins(value)))
    return msgspec.json.format(encoded, indent=1).decode("utf-8") + "\n"


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, dict):
        return {_encodable(k): _encodable(v) for k, v in value.items()}
    return [_encodable(v) for v in value] if isinstance(value, (list, tuple)) else value


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the document that ``render`` writes."""
    return schema_of(Report, "report", REPORT_SCHEMA_VERSION)


def schema_of(kind: type[msgspec.Struct], name: str, version: int) -> dict[str, Any]:
    """JSON Schema (2020-12) of what ``document`` makes of a value of this kind."""
    (root,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:dsdoctor:{name}:{version}",
        "title": f"dsdoctor {name}",
        **root,
        "$defs": definitions,
    }
