"""`python -m dsdoctor`."""

from dsdoctor.cli import main

if __name__ == "__main__":
    main()
