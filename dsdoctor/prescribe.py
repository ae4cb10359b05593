"""From an intention ("install ninja") to the exact command for this machine and this environment."""

import re
import shlex

from dsdoctor.facts import Host, Python, Snapshot

# What one thing is called by each package manager. A name missing here is given as it stands.
# Source: the distributions' package lists (packages.debian.org, packages.fedoraproject.org, archlinux.org/packages,
# pkgs.alpinelinux.org), looked up 2026-11-30.
SYSTEM_PACKAGES: dict[str, dict[str, str]] = {
    "libaio-dev": {"dnf": "libaio-devel", "yum": "libaio-devel", "zypper": "libaio-devel", "pacman": "libaio"},
    "g++": {"dnf": "gcc-c++", "yum": "gcc-c++", "zypper": "gcc-c++", "pacman": "gcc"},
    "python3-dev": {"dnf": "python3-devel", "yum": "python3-devel", "zypper": "python3-devel", "pacman": "python"},
    "libc6-dev": {"dnf": "glibc-devel", "yum": "glibc-devel", "zypper": "glibc-devel", "pacman": "glibc", "apk": "libc-dev"},
    "openssh-client": {"dnf": "openssh-clients", "yum": "openssh-clients", "zypper": "openssh-clients", "pacman": "openssh"},
}  # fmt: skip
_INSTALL = {
    "apt": "apt-get install -y",
    "dnf": "dnf install -y",
    "yum": "yum install -y",
    "zypper": "zypper install -y",
    "pacman": "pacman -S --noconfirm",
    "apk": "apk add",
    "brew": "brew install",
    "winget": "winget install",
}
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_HOME = re.compile(r"(?:^|(?<=:))~(?=[/\\:]|\Z)")
_ON_WINDOWS = {"HOME": "USERPROFILE", "PWD": "CD", "USER": "USERNAME"}
_Parts = tuple[tuple[str, bool], ...]  # text and whether it is the name of a variable


class Prescriber:
    """Writes commands for one machine. Knows the environment's kind and the distribution's package manager."""

    def __init__(self, host: Host | None, python: Python | None) -> None:
        self.host = host
        self.python_facts = python

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Prescriber":
        return cls(snapshot.host, snapshot.python)

    @property
    def windows(self) -> bool:
        return self.host is not None and self.host.system == "windows"

    @property
    def notebook(self) -> bool:
        return self.host is not None and self.host.hosted_on in ("colab", "kaggle")

    def shell(self, command: str) -> str:
        """The command as it is typed here: in a notebook it starts with an exclamation mark."""
        return f"!{command}" if self.notebook else command

    @property
    def python(self) -> str:
        """The patient's interpreter, quoted for a shell."""
        executable = self.python_facts.executable if self.python_facts else "python"
        if self.windows:
            return f'"{executable}"' if " " in executable else executable
        return self.quote(executable)

    def pip(self, *requirements: str, options: str = "") -> str:
        """Install distributions into the patient's environment."""
        wanted = " ".join(self.quote(r) for r in requirements)
        tail = f"{options} {wanted}".strip()
        facts = self.python_facts
        if facts is not None and not facts.has_pip and facts.uv:
            return self.shell(f"uv pip install --python {self.python} {tail}")
        if facts is not None and facts.environment == "uv" and facts.uv:
            return self.shell(f"uv pip install --python {self.python} {tail}")
        if facts is not None and facts.externally_managed and facts.environment == "system":
            if not self._in_container:  # PEP 668: pip refuses here, and rightly
                return self.shell(f"{self.python} -m venv .venv && .venv/bin/python -m pip install {tail}")
            tail = f"--break-system-packages {tail}"
        return self.shell(f"{self.python} -m pip install {tail}")

    def pip_uninstall(self, *names: str) -> str:
        """Remove distributions from the patient's environment."""
        facts = self.python_facts
        listed = " ".join(self.quote(n) for n in names)
        if facts is not None and facts.environment == "uv" and facts.uv:
            return self.shell(f"uv pip uninstall --python {self.python} {listed}")
        return self.shell(f"{self.python} -m pip uninstall -y {listed}")

    def conda(self, *packages: str) -> str | None:
        """`conda install`, when the patient lives in a conda environment, else None."""
        facts = self.python_facts
        if facts is None or facts.environment != "conda":
            return None
        return self.shell(f"conda install -y -p {self.quote(facts.prefix)} -c conda-forge {' '.join(packages)}")

    def system(self, *packages: str) -> tuple[str, ...]:
        """Install system packages, named as Debian names them. Empty when there is no known package manager."""
        manager = self.host.package_manager if self.host else None
        if manager is None:
            return ()
        names = " ".join(SYSTEM_PACKAGES.get(p, {}).get(manager, p) for p in packages)
        line = f"{_INSTALL[manager]} {names}"
        if manager == "apt":
            line = f"apt-get update && {line}" if self.root else f"apt-get update && sudo {line}"
        if manager not in ("brew", "winget") and not self.root:
            line = f"sudo {line}"
        return (self.shell(line),)

    def set(self, name: str, value: str) -> str:
        """Set an environment variable for the commands that follow in this shell.

        In ``value``, $NAME and ${NAME} stand for other variables and a leading ~ for the home folder, in every shell;
        all else is literal.
        """
        parts = _parts(value)
        if (
            self.notebook
        ):  # IPython's %env expands no variable of the environment (IPython/core/magics/osm.py, 2026-11-30)
            return f"import os; os.environ[{name!r}] = {_python(parts)}"
        if self.windows:
            return f'set "{name}={_cmd(parts)}"'
        return f"export {name}={_posix(parts)}"

    def unset(self, name: str) -> str:
        """Take an environment variable away in this shell."""
        if self.notebook:
            return f"import os; os.environ.pop({name!r}, None)"
        return f'set "{name}="' if self.windows else f"unset {name}"

    @property
    def root(self) -> bool:
        return self.host is not None and self.host.is_root

    @property
    def _in_container(self) -> bool:
        return self.host is not None and self.host.container is not None

    def remove(self, *paths: str) -> str:
        """Remove files and folders with all that is in them."""
        if self.windows:
            listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
            return f'powershell -Command "Remove-Item -Recurse -Force -LiteralPath {listed}"'
        return self.shell(f"rm -rf -- {' '.join(self.quote(path) for path in paths)}")

    def quote(self, text: str) -> str:
        """The text as one word of a shell here."""
        if self.windows:
            return f'"{text}"' if any(c in text for c in " <>|&") else text
        if text.startswith(
            "~/"
        ):  # a machine that was recorded without the name of its home; quoted, ~ would be a folder
            return f"~/{shlex.quote(text[2:])}"
        return shlex.quote(text)


def _parts(value: str) -> _Parts:
    """``value`` cut into literals and names of variables."""
    pieces = _VARIABLE.split(_HOME.sub("${HOME}", value))  # literal, braced name, bare name, literal, ...
    cut: list[tuple[str, bool]] = [(pieces[0], False)]
    for braced, bare, literal in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        cut += [(braced or bare, True), (literal, False)]
    return tuple(part for part in cut if part[0])


def _posix(parts: _Parts) -> str:
    """One word of a POSIX shell, also of an interactive one (``!``) and of zsh (``$NAME[`` and ``$NAME:h`` mean more there)."""
    if not any(is_name for _, is_name in parts):
        return shlex.quote("".join(text for text, _ in parts))
    following = [text for text, _ in parts[1:]] + [""]
    words = []
    for (text, is_name), after in zip(parts, following, strict=True):
        if is_name:
            words.append(f"${text}" if re.match(r":?/|\Z", after) else f"${{{text}}}")
        else:
            words.append(re.sub(r'(["\\`$])', r"\\\1", text).replace("!", "\"'!'\""))
    return f'"{"".join(words)}"'


def _cmd(parts: _Parts) -> str:
    return "".join(f"%{_ON_WINDOWS.get(text, text)}%" if is_name else text for text, is_name in parts)


def _python(parts: _Parts) -> str:
    values = {"PWD": "os.getcwd()"}
    words = [values.get(text, f"os.environ.get({text!r}, '')") if is_name else repr(text) for text, is_name in parts]
    return " + ".join(words) or "''"
