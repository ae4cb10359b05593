"""What may go wrong around a command, said in one sentence with the right exit code."""

import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn, TypeVar

import click

T = TypeVar("T")


def guarded(action: Callable[[], T]) -> T:
    """Run ``action``. A user's mistake ends in 2, our failure in 3, Ctrl-C in 130; never in a traceback."""
    from dsdoctor.examination import ExaminationError
    from dsdoctor.settings import SettingsError

    try:
        return action()
    except ExaminationError as error:
        stop(str(error), error.exit_code)
    except SettingsError as error:
        stop(str(error), 2)
    except KeyboardInterrupt:
        stop("interrupted", 130)
    except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
        raise
    except (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        if os.environ.get("DSDOCTOR_DEBUG"):
            traceback.print_exc()
        stop(
            f"dsdoctor itself failed ({type(error).__name__}: {error}); DSDOCTOR_DEBUG=1 shows where, please report it",
            3,
        )


def stop(sentence: str, code: int) -> NoReturn:
    """Say ``sentence`` on stderr and end with ``code``."""
    from dsdoctor.render.plain import one_line

    print(f"dsdoctor: {one_line(sentence)}", file=sys.stderr)
    raise SystemExit(code)
