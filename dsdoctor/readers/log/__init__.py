"""Read what a run printed, of any size and in any wrapping, for the lines that are known, exceptions and ends of processes.

``text.py`` opens it and cuts it into pages of lines, ``boxes.py`` joins what rich broke, ``prefixes.py`` takes off what launchers and collectors put before a
line, ``scan.py`` finds the few lines that matter, ``ends.py`` reads exceptions and exits, ``reading.py`` puts it together.
"""

from dsdoctor.readers.log.reading import Reading, read

__all__ = ["Reading", "read"]
