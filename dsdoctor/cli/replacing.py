"""A file of the user in a new version, whole or not at all."""

import os
import stat
import tempfile

from dsdoctor.readers.ds_config import BASE64, STDIN
from dsdoctor.request import ExaminationError


def replace(path: str, old: str, new: str) -> None:
    """Put ``new`` in the place of ``old``, whole or not at all; a link stays one, and its file keeps its rights.

    Raises ExaminationError where there is no such file, or it changed meanwhile.
    """
    if path in (STDIN, BASE64) or not os.path.isfile(path):
        raise ExaminationError(f"{path} is no file that can be written; leave --write out and apply the patch")
    real, spare = os.path.realpath(path), None
    try:
        with open(real, "rb") as file:
            if file.read() != old.encode("utf-8"):
                raise ExaminationError(f"{path} changed while it was judged; nothing was written")
            rights = os.fstat(file.fileno())
        number, spare = tempfile.mkstemp(prefix=".dsdoctor-", dir=os.path.dirname(real))
        with os.fdopen(number, "wb") as file:
            file.write(new.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(spare, stat.S_IMODE(rights.st_mode))
        os.replace(spare, real)
    except OSError as error:
        raise ExaminationError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        if spare and os.path.exists(spare):
            os.unlink(spare)
