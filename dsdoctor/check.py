"""How a check is written: a decorated pure function whose parameters name the facts that it needs."""

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

from dsdoctor.facts import Fact
from dsdoctor.model import Check, Finding, Severity
from dsdoctor.prescribe import Prescriber

T = TypeVar("T")
CheckFunction = Callable[..., Iterator[Finding]]
_CODE = re.compile(r"^([A-Z]{2,6})(\d{3})$")


class NotApplicable(Exception):
    """Raised by a check that has nothing to judge here; the message is the reason."""


class Unknown(Exception):
    """Raised by a check whose facts are there but do not say enough; the message is the reason."""


def not_applicable(reason: str) -> NoReturn:
    """End this check: there is nothing to judge (``reason`` is shown)."""
    raise NotApplicable(reason)


def unknown(reason: str) -> NoReturn:
    """End this check: it cannot be decided (``reason`` is shown)."""
    raise Unknown(reason)


def known(value: T | None, what: str) -> T:
    """``value``, or end the check as UNKNOWN because ``what`` is not known."""
    if value is None:
        raise Unknown(f"{what} is not known")
    return value


def check(
    code: str,
    title: str,
    *,
    causes: Sequence[str],
    severity: Severity = Severity.ERROR,
    guards: Sequence[str] = (),
    refuted_by: Sequence[str] = (),
) -> Callable[[CheckFunction], Check]:
    """Make a Check of a function.

    ``title`` states the healthy state as a sentence. ``causes`` are all slugs that its findings may name. ``guards``
    are the abilities (see dsdoctor_checks/capabilities.py) that an ERROR finding takes away. ``refuted_by`` names trials
    (probes/trials.py): the check predicts from files that they fail, so when all of them worked it passes. Parameters are injected
    by type: a fact section, ``Section | None`` for one that may be missing, or ``Prescriber`` for commands.
    Raises TypeError or ValueError for a declaration that cannot work.
    """
    match = _CODE.match(code)
    if not match:
        raise ValueError(f"{code!r} is no code: FAMILY and three digits, such as CUDA201")

    def decorate(function: CheckFunction) -> Check:
        if not function.__doc__:
            raise ValueError(f"{code} has no docstring; `dsdoctor explain {code}` prints it")
        needs, optional = _needs(code, function)
        return Check(
            code=code,
            title=title,
            family=match.group(1),
            severity=severity,
            causes=tuple(causes),
            guards=tuple(guards),
            rationale=inspect.cleandoc(function.__doc__),
            run=function,
            needs=needs,
            optional=optional,
            refuted_by=tuple(refuted_by),
        )

    return decorate


def _needs(code: str, function: CheckFunction) -> tuple[dict[str, Any], frozenset[str]]:
    hints = function.__annotations__
    if any(isinstance(hint, str) for hint in hints.values()):  # `from __future__ import annotations`
        hints = typing.get_type_hints(function)
    needs: dict[str, Any] = {}
    optional: set[str] = set()
    for name in function.__code__.co_varnames[: function.__code__.co_argcount]:
        hint = hints.get(name)
        if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
            kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
            hint = kinds[0] if len(kinds) == 1 else None
            optional.add(name)
        if not (isinstance(hint, type) and issubclass(hint, (Fact, Prescriber))):
            raise TypeError(f"{code}: parameter {name!r} needs a fact section or Prescriber as its type")
        needs[name] = hint
    return needs, frozenset(optional)
