"""dsdoctor: the doctor for DeepSpeed set-ups."""

__version__ = "0.1.0"
