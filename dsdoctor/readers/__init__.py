"""Take facts out of text that somebody pasted or wrote. Every reader yields the same fact types as the probes do.

A reader never trusts its text: it is bounded in time and memory, never raises for what the text holds, and removes
terminal escapes and control characters from everything that it keeps.
"""
