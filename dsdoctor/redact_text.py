"""Redact one text: paths of a home, names of hosts, addresses, serials, tokens. Every rule leaves its own result alone."""

import ipaddress
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache

import msgspec

SECRET = "redacted"
# Words too common in a report to be replaced wherever they stand, even if a host or a user is called so.
_COMMON = frozenset(
    re.findall(
        r"[\w-]+",
        """
    localhost host user node linux ubuntu debian fedora python python3 torch deepspeed cuda nvidia gpu cpu docker
    default server master worker main root home none nccl triton numpy mpi conda venv container redacted email
    private public link local mac address uuid serial ninja nvcc cmake usr lib bin opt tmp var etc site packages
    auto true false login head compute gateway cluster frontend submit train trainer training test dev admin data
    model models build builder work runner jupyter jovyan ec2-user centos rocky azureuser app vscode coder users
    homes
    """,
    )
)
_TOLD = r"(?i:user(?:name)?|logname|owner|account|by|belongs to|uid=\d{1,10})[\s=:'\"(]{1,3}"  # what comes before a user's name
_NOBODY = frozenset(("root", "user", ""))
_SECRET_NAME = re.compile(
    r"(?:^|[_\-.])(?:TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH|COOKIE|KEY|PRIVATE)(?:$|[_\-.])"
    r"|API_?KEY|APIKEY|ACCESS_?KEY|PASSWORD|_PWD$|^WANDB_|^HF_TOKEN",
    re.IGNORECASE,
)
_URL_LOGIN = re.compile(r"(://)[^/\s@]{1,200}@")
_TOKEN = re.compile(
    r"(?<![\w-])(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{20,}"
    r"|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{35}|xox[abp]-[\w-]{10,}|nvapi-[\w-]{16,}|wandb_v\d_\w{16,}|pypi-[\w-]{20,}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})(?![\w-])"
)
_WANDB_KEY = re.compile(r"(?i)(\bwandb[^\n]{0,24}?)\b[0-9a-f]{40}\b")  # elsewhere 40 hex digits are a git commit
_ASSIGNED = re.compile(
    r"(?i)((?<![A-Za-z])(?:[A-Za-z0-9]{0,40}_)?(?:token|passw(?:or)?d|secret|api[_-]?key|access[_-]?key)[\"']?\s?[=:]\s?[\"']?)"
    r"(?!redacted)[^\s\"',;&}{]+"
)
_BEARER = re.compile(r"(?i)(\bbearer\s)(?!redacted)[\w.~+/=-]{8,}")
_UUID = re.compile(r"\b((?:MIG-)?GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{1,12})*(?:/\d+/\d+)?(?![\w-])")
_ANY_UUID = re.compile(r"(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])")
_SERIAL = re.compile(r"(?i)(\bserial(?:[ _]?number)?\s?[:=]\s?[\"']?)(?!redacted|N/A)[\w-]+")
_MAC = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2})(?:\1[0-9A-Fa-f]{2}){4}(?![\w:-])")
_IP6 = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f:]*[0-9])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:\.\d{1,3}){0,3}(?![\w:])"
)
_IP4 = re.compile(r"(?<![\w.+\-])\d{1,3}(?:\.\d{1,3}){3}(?![\w+\-]|\.\w)")
_CLOUD_HOST = re.compile(r"(?<![\w.-])ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w-]+){0,4}(?![\w-])")
_VERSION_BEFORE = re.compile(
    r"(?i)(?:\b(?:version|release|cuda|cudnn|nccl|torch|driver|toolkit|triton|python|gcc|build|ver|[\w-]+-cu\d\d)\b"
    r"(?:\s(?:is|are|wants|brings|needs|has)\b)?[\s:=('\"]*|[=<>~!]=\s*)$"
)
_EMAIL = re.compile(r"(?<![\w.+/@-])[\w.+-]{1,64}@(?=[\w-]*[A-Za-z])[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,24}(?![\w-])")
_EMPTY_QUOTES = re.compile(r"(?<=[\s=])''(?=\"\$HOME\")|(?<=\"\$HOME\")''(?=\s|\Z)|(?<=[\s(])'' \+ (?=os\.environ)")
_ANY_HOME = re.compile(r"(/home\d*/|/homes/|/[Uu]sers/|[A-Za-z]:[\\/]{1,2}Users[\\/]{1,2})([^/\\\s:;,'\"()\[\]]+)")
_KEPT_HOMES = frozenset(("user", "Shared", "Public", "Default", "linuxbrew"))


class Words(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What is private here. ``hosts`` maps names to what stands for them."""

    home: str | None = None
    user: str | None = None
    hosts: Mapping[str, str] = {}
    versions: frozenset[str] = frozenset()  # versions that look like addresses
    spoken: frozenset[str] = frozenset()  # words that mean something else here even if the user is called so

    @property
    def on_windows(self) -> bool:
        return re.match(r"[A-Za-z]:", self.home or "") is not None

    @cached_property
    def home_pattern(self) -> "re.Pattern[str] | None":
        parts = [part for part in re.split(r"[\\/]+", self.home or "") if part]
        if not parts or not re.match(r"[\\/]|[A-Za-z]:", self.home or ""):
            return None
        windows = self.on_windows
        slash = r"[\\/]{1,2}" if windows else "/"
        body = ("" if windows else "/") + slash.join(re.escape(part) for part in parts)
        return re.compile(rf"(?:(?<![\w.~\-/])|(?<=-[ILB])|(?<=//)){body}(?![\w.\-])", re.IGNORECASE if windows else 0)

    @cached_property
    def user_pattern(self) -> "re.Pattern[str] | None":
        if self.user is None or self.user in _NOBODY or self.user.lower() in _COMMON:
            return None
        name = re.escape(self.user)
        places = [
            rf"(?<=[/\\]){name}(?=[/\\:;,'\"\s)\]]|$)|(?<![\w.@/-]){name}(?=@[\w]|@$)",
            rf"(?<![\w-])(?P<told>{_TOLD}){name}(?![\w-]|\.\w)",
        ]
        if len(self.user) > 3 and self.user.lower() not in self.spoken:  # a short name may be a word of any sentence
            places.append(rf"(?<![\w.@/-]){name}(?![\w-]|\.\w)")
        return re.compile("|".join(places))

    @cached_property
    def host_pattern(self) -> "re.Pattern[str] | None":
        names = sorted((n for n in self.hosts if len(n) > 2 and self._is_name(n)), key=len, reverse=True)
        if not names:
            return None
        tail = r"(?:(?:\.[A-Za-z][\w-]*){2,8}|\.(?:local|internal|lan|cluster))?"
        return re.compile(rf"(?<![\w.-])({'|'.join(re.escape(n) for n in names)}){tail}(?![\w-])", re.IGNORECASE)

    @cached_property
    def lower_hosts(self) -> dict[str, str]:
        return {name.lower(): word for name, word in self.hosts.items()}

    def _is_name(self, name: str) -> bool:
        low = name.lower()
        return low not in _COMMON and not low.isdigit() and not re.fullmatch(r"node\d+", low)


def is_secret_name(name: str) -> bool:
    """True for the name of a variable or key whose value is a secret."""
    return _SECRET_NAME.search(name) is not None


def text(value: str, words: Words, *, addresses: bool = True) -> str:
    """``value`` without names and secrets. ``addresses`` False: it is a version, so nothing in it is an IP address."""
    value = _ANY_UUID.sub("uuid", _UUID.sub(r"\1-uuid", tokens(value)))
    value = _paths(_SERIAL.sub(rf"\1{SECRET}", value), words)
    if words.host_pattern:
        value = words.host_pattern.sub(lambda m: words.lower_hosts[m.group(1).lower()], value)
    value = _CLOUD_HOST.sub("host", value)
    if "@" in value:
        value = _EMAIL.sub("email", value)
    if addresses:
        value = _IP6.sub(_class_of, _MAC.sub("mac-address", value))
        value = _IP4.sub(lambda m: m.group() if _is_version(m, words) else _class_of(m), value)
    return value


@lru_cache(maxsize=8192)  # facts and the report that holds them are walked one after the other
def tokens(value: str) -> str:
    """``value`` without what opens a door: tokens, passwords, keys."""
    if "://" in value and "@" in value:
        value = _URL_LOGIN.sub(rf"\1{SECRET}@", value)
    value = _WANDB_KEY.sub(rf"\1{SECRET}", _TOKEN.sub(SECRET, value))
    return _ASSIGNED.sub(rf"\1{SECRET}", _BEARER.sub(rf"\1{SECRET}", value))


def command(value: str, words: Words) -> str:
    """The same for a command: it names the home folder so that a shell, cmd or Python still finds it."""
    if words.home_pattern and words.home_pattern.search(value):
        value = words.home_pattern.sub(lambda m: _home_in(value, m.start(), m.end(), words), value)
        value = _EMPTY_QUOTES.sub("", value)
    return text(value, words)


def _home_in(line: str, start: int, end: int, words: Words) -> str:
    """What stands for the home folder at this place of a command."""
    if words.on_windows:
        return "%USERPROFILE%"
    quote = _open_quote(line[:start])
    if line.startswith("import "):  # a line of Python, for a notebook
        return f"{quote} + os.environ['HOME'] + {quote}" if quote else "~"
    if quote == "'":
        return "'\"$HOME\"'"
    alone = not quote and re.search(r"(?:^!?|\s)\Z", line[:start]) and re.match(r"/|\s|\Z", line[end:])
    return "~" if alone else "$HOME"


def _open_quote(line: str) -> str:
    """The quote that is open where ``line`` ends, or nothing."""
    quote = ""
    for found in re.finditer(r"\\.|['\"]", line, re.DOTALL):
        character = found.group()
        if len(character) == 1:
            quote = character if not quote else "" if character == quote else quote
        elif quote == "'" and character[1] == "'":  # nothing escapes between single quotes
            quote = ""
    return quote


def _paths(value: str, words: Words) -> str:
    if words.home_pattern:
        value = words.home_pattern.sub("~", value)
    if words.user_pattern:
        value = words.user_pattern.sub(lambda m: (m["told"] or "") + "user", value)
    return _ANY_HOME.sub(lambda m: m.group() if m.group(2) in _KEPT_HOMES else m.group(1) + "user", value)


def _is_version(found: "re.Match[str]", words: Words) -> bool:
    before = found.string[max(0, found.start() - 24) : found.start()]
    return found.group() in words.versions or _VERSION_BEFORE.search(before) is not None


def _class_of(found: "re.Match[str]") -> str:
    return address_class(found.group()) or found.group()


def address_class(value: str) -> str | None:
    """What kind of address it is; itself when it is loopback or unspecified, None when it is no address at all."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return None
    if address.is_loopback or address.is_unspecified or value.startswith("255."):
        return value
    if address.is_link_local:
        return "link-local-ip"
    return "private-ip" if address.is_private else "public-ip"
