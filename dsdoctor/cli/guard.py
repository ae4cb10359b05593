"""What may go wrong around a command, said in one sentence with the right exit code."""

import errno
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, TypeVar

T = TypeVar("T")
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EIO)  # of a stdout that is a file


def guarded(action: Callable[[], T]) -> T:
    """Run ``action``. A user's mistake ends in 2, Ctrl-C in 130, an input or output that broke in 3.

    Everything else that is raised is our defect: it goes on to ``last_words``.
    """
    from dsdoctor.request import ExaminationError
    from dsdoctor.settings import SettingsError

    try:
        return action()
    except ExaminationError as error:
        stop(str(error), error.exit_code)
    except SettingsError as error:
        stop(str(error), 2)
    except KeyboardInterrupt:
        stop("interrupted", 130)
    except BrokenPipeError:
        raise
    except (EOFError, OSError) as error:  # click would end these with 1, which means findings
        _defect(error)


def last_words(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """For sys.excepthook: what nobody expected is one sentence and exit 3, never a traceback and never exit 1."""
    if issubclass(kind, KeyboardInterrupt):
        stop("interrupted", 130)
    _defect(error)


def _defect(error: BaseException) -> NoReturn:
    if isinstance(error, OSError) and error.filename is None and error.errno in _NO_ROOM:
        stop(f"the result cannot be written: {error.strerror}", 3)
    if os.environ.get("DSDOCTOR_DEBUG"):
        import traceback

        traceback.print_exception(error)
    what = f"{type(error).__name__}: {error}"
    stop(f"dsdoctor itself failed ({what}); please report it with what DSDOCTOR_DEBUG=1 shows", 3)


def stop(sentence: str, code: int) -> NoReturn:
    """Say ``sentence`` on stderr and end with ``code``."""
    from dsdoctor.render.plain import one_line

    print(f"dsdoctor: {one_line(sentence)}", file=sys.stderr)
    raise SystemExit(code)
