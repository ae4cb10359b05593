"""The checks that ship with dsdoctor, one module per family. They import dsdoctor.api and the standard library only."""
