"""Which document holds the names of this machine.

What is made to be passed on (Markdown, HTML) is redacted. What is read beside the machine is true, so that its commands
can be pasted. Tokens are in no document, and facts (JSON, snapshots) are always redacted: they hold the environment.
"""

import os

import msgspec

from dsdoctor.facts import Snapshot
from dsdoctor.model import Report

PASSED_ON = ("markdown", "html")


def shown(report: Report, form: str, wish: bool | None) -> Report:
    """The report as this format may show it. ``wish``: --redact or --no-redact, None when neither is given."""
    from dsdoctor.redact import hide_tokens, redact_report

    if wish or (wish is None and form in PASSED_ON):
        return redact_report(report, *_whose())
    return hide_tokens(msgspec.structs.replace(report, facts=redacted(report.facts)) if form == "json" else report)


def redacted(snapshot: Snapshot) -> Snapshot:
    """``snapshot`` without this user's and this machine's names and secrets. A recorded machine stays as it is, a log does not."""
    from dsdoctor.redact import redact

    own = snapshot.origin == "this machine" or snapshot.log is not None
    return redact(snapshot, *_whose()) if own else snapshot


def _whose() -> tuple[str, str | None, str]:
    """Home, user and host name of this machine."""
    import getpass
    import socket

    try:
        user: str | None = getpass.getuser()
    except (KeyError, OSError, ImportError):
        user = None
    return os.path.expanduser("~"), user, socket.gethostname()
