"""All that the author of a check may import. Everything else of dsdoctor may change without notice."""

from dsdoctor.check import check, known, not_applicable, unknown
from dsdoctor.facts import *  # noqa: F403
from dsdoctor.facts import __all__ as _facts
from dsdoctor.knowledge import ANY_CAUSE, CapabilitySpec, CauseInfo, OpSpec
from dsdoctor.model import Check, ConfigEdit, Evidence, Finding, Platform, Proof, Remedy, Severity
from dsdoctor.prescribe import Prescriber

__all__ = [
    "ANY_CAUSE", "CapabilitySpec", "CauseInfo", "Check", "ConfigEdit", "Evidence", "Finding", "OpSpec", "Platform", "Prescriber", "Proof", "Remedy", "Severity",
    "check", "known", "not_applicable", "unknown", *_facts,
]  # fmt: skip
