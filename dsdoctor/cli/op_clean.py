"""`dsdoctor ops --clean`."""

import sys

import click

from dsdoctor.model import Report


def clean(report: Report, *, assume_yes: bool) -> int:
    """Show what is proved stale in the user's extension cache, and remove it when the user agrees."""
    from dsdoctor.probes import stale
    from dsdoctor.render.plain import one_line

    why_none = stale.reason_to_keep_all(report.facts.caches)
    things = stale.stale_things(report.facts)
    found, kept = ([t for t in things if t.kept is side] for side in (False, True))
    for title, group in (("Stale", found), ("Kept, for somebody else may use it", kept)):
        lines = [f"  {one_line(t.path)}\n      {one_line(t.why)}" for t in group]
        print("\n".join([f"{title}:", *lines]) if group else "", end="\n" if group else "")
    if not found:
        print(why_none or "Nothing in the extension cache is proved stale.")
        return 0
    if not assume_yes and not (sys.stdin.isatty() and click.confirm(f"Remove these {len(found)}?", err=True)):
        print("Nothing was removed. `dsdoctor ops --clean --yes` removes what is listed as stale.")
        return 0
    now = {thing.path for thing in stale.stale_things(stale.look_again(report.facts)) if not thing.kept}
    problems = [problem for t in found if t.path in now and (problem := stale.remove(t))]
    problems += [f"{t.path} is in use by now, and stays" for t in found if t.path not in now]
    for problem in problems:
        print(f"dsdoctor: {one_line(problem)}", file=sys.stderr)
    print(f"{len(found) - len(problems)} removed.")
    return 1 if problems else 0
