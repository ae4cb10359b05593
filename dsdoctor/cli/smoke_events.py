"""Keeps what an observer is told in a file, one JSON line each: a run can be looked at again later."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from dsdoctor.events import Event, Observer
from dsdoctor.request import ExaminationError


@contextmanager
def recording(path: str | None, observe: Observer) -> Iterator[Observer]:
    """An observer that tells ``observe`` and writes to ``path``, when there is one. ``at`` counts seconds from now.

    Raises ExaminationError when the file cannot be written.
    """
    if path is None:
        yield observe
        return
    began, encoder = time.monotonic(), msgspec.json.Encoder()
    try:
        with open(path, "wb") as file:

            def record(event: Event) -> None:
                kept = {name: value for name, value in msgspec.to_builtins(event).items() if value not in (None, {})}
                file.write(encoder.encode({"at": round(time.monotonic() - began, 3), **kept}) + b"\n")
                observe(event)

            yield record
    except OSError as error:
        if error.filename != path:
            raise
        raise ExaminationError(f"{path} cannot be written: {error.strerror or error}") from None
