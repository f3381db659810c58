"""What is a secret in a configuration or a text: it stays out of ZooKeeper, logs, errors and what REST answers.

Told by the key's name, and by what the value looks like: a password within a URL, a private key, a token of a service.
To hide too much costs a look at a file, to hide too little costs the secret; still, a path, a class or a number of
seconds stays visible, whatever its key is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "*****"

_KEY: Final = re.compile(
    r"passw|passphrase|secret(?!ar)|token(?!i[sz])|credential|payload|superacl|sasl\.jaas"
    r"|(?:^|[^a-z])(?:pass|pwd|pin|sas)(?:[^a-z]|$)"
    r"|(?:private|api|access|account|shared|signing|signature|encryption|encrypt|master|storage|auth|ssh|session|hmac|service.?account)"
    r"[._-]?key",
    re.IGNORECASE,
)
"""Names of secrets."""

_ORDINARY: Final = re.compile(
    r"(?:file|path|dir|directory|location|provider|providers|class|classes|type|algorithm|enabled?|required|length|size"
    r"|count|secs?|seconds|ms|millis|minutes|hours|interval|timeout|limit|max|min|bits|[._-]per[._-]\w{1,40})$",
    re.IGNORECASE,
)
"""Ends of names of what is said *about* a secret."""
_CLASSES_THAT_ARE_SECRET: Final = frozenset({"topology.auto-credentials"})

_NAMED: Final = (
    r"pass(?:word|wd|phrase)?|pwd|secret|client_secret|token|access_token|refresh_token|api_?key|account_?key"
    r"|access_?key|shared_?access_?key|private_?key|secret_?key|sig|signature|x-amz-signature|x-amz-security-token"
    r"|x-amz-credential|sslpassword|trust_?store_?password|key_?store_?password"
)
_KEY_BLOCK: Final = re.compile(
    r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----.*?(?:-----END \1-----|\Z)", re.DOTALL
)
"""Of private keys all; a block without its end, to the end."""
# A search takes time in proportion to the text: no two beginnings of one pattern are in a run of the characters that it
# continues with. A test tries the worst texts.
_PARTS: Final = (
    # user:password@ of a URL.
    (re.compile(r"(?<=://)([^/\s:@?#]{0,200}):[^/\s@]{1,500}@"), rf"\1:{HIDDEN}@"),
    # name=value, as in queries, connection strings of JDBC and Azure, and JAAS configurations.
    (
        re.compile(
            rf"(?<![A-Za-z0-9])((?:{_NAMED})\s{{0,3}}=\s{{0,3}})"
            r"(\"[^\"]{1,2000}(?:\"|\Z)|'[^']{1,2000}(?:'|\Z)|[^\s&;,\"']{1,2000})",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
    # "name": value, as in JSON, in JSON within a string, and in what Python prints of a dict.
    (
        re.compile(
            rf"(?<![A-Za-z0-9])((?:{_NAMED})\\{{0,3}}[\"']\s{{0,3}}:\s{{0,3}})"
            r"(\"(?:[^\"\\]|\\.){1,2000}(?:\"|\Z)|'(?:[^'\\]|\\.){1,2000}(?:'|\Z)"
            r"|\\\"(?:[^\"\\]|\\\\(?:\\.)?){1,2000}(?:\\\"|\Z)"
            r"|[^\s,\"'\\{}\[\]]{1,2000})",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
    # Values of headers.
    (re.compile(r"\b((?:bearer|basic)\s{1,3})[A-Za-z0-9._~+/=-]{8,4000}", re.IGNORECASE), rf"\1{HIDDEN}"),
    # JSON web tokens.
    (
        re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{0,4000}"),
        HIDDEN,
    ),
    # Tokens that services give out with a mark of theirs.
    (
        re.compile(
            r"(?<![A-Za-z0-9_-])(?:(?:AKIA|ASIA)[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{40,255}"
            r"|glpat-[A-Za-z0-9_-]{20,64}|xox[abeoprs]-[A-Za-z0-9-]{10,255}|AIza[0-9A-Za-z_-]{35}"
            r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}|dapi[0-9a-f]{32}(?:-\d)?|npm_[A-Za-z0-9]{36}"
            r"|hvs\.[A-Za-z0-9_-]{20,255}|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64})"
        ),
        HIDDEN,
    ),
    # Keys of Azure storage: 64 bytes.
    (re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])"), HIDDEN),
)
_AWS_SECRET: Final = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])(?!/)[A-Za-z0-9/+]{40}")
"""A whole value. It has no mark, so what is as long and all of one kind, as a SHA-1 is, or has a path's many slashes is
none."""
_MOST_SLASHES: Final = 3


_MOST_CHARS: Final = 1 << 18
"""Of a text in which secrets are searched: errors and traces that are longer are cut anyway."""
_MOST_SECRET: Final = 20_000
"""No pattern takes more characters."""


def is_secret(key: str) -> bool:
    """Returns whether what a key says is nobody else's business, judging by its name.

    Example:
        >>> is_secret("storm.zookeeper.auth.payload"), is_secret("fs.azure.account.key.acct"), is_secret("db.pwd")
        (True, True, True)
        >>> is_secret("topology.workers"), is_secret("nimbus.auth.token.file"), is_secret("my.tokens.per.second")
        (False, False, False)
    """
    if key in _CLASSES_THAT_ARE_SECRET:
        return True
    return _KEY.search(key) is not None and _ORDINARY.search(key) is None


def scrubbed(text: str) -> str:
    """Returns a text with what looks like a secret made unreadable.

    Of a text of more than 262,144 characters the middle is left out.

    Example:
        >>> scrubbed("can't reach jdbc:postgresql://ann:hush@db/sales?ssl=true&password=hush")
        "can't reach jdbc:postgresql://ann:*****@db/sales?ssl=true&password=*****"
    """
    if _AWS_SECRET.fullmatch(text) and text.count("/") <= _MOST_SLASHES:
        return HIDDEN
    text = _KEY_BLOCK.sub(HIDDEN, text)
    if len(text) > _MOST_CHARS:
        # A secret that is cut is not known as one, so what may be a part of it goes.
        head = _scrubbed(text[: _MOST_CHARS // 2])[:-_MOST_SECRET]
        tail = _scrubbed(text[-_MOST_CHARS // 2 :])[_MOST_SECRET:]
        return f"{head}\n... {len(text):,} characters in all ...\n{tail}"
    return _scrubbed(text)


def _scrubbed(text: str) -> str:
    for pattern, replacement in _PARTS:
        text = pattern.sub(replacement, text)
    return text


def without_secrets(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration without what is secret, at any depth.

    A list with a secret in it is left out as a whole: a list without one of its parts would say something else.

    Example:
        >>> without_secrets({"my.db": {"host": "a", "password": "b"}, "my.token": "c", "my.url": "http://d:e@f"})
        {'my.db': {'host': 'a'}}
    """
    found = {}
    for key, value in conf.items():
        if is_secret(str(key)):
            continue
        if isinstance(value, Mapping):
            found[key] = without_secrets(value)
        elif shown(value) == value:
            found[key] = value
    return found


def hidden(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration to show: secrets are there, and unreadable.

    Example:
        >>> hidden({"my.token": "c", "my.size": 3, "other.token": None, "my.url": "http://d:e@f/g"})
        {'my.token': '*****', 'my.size': 3, 'other.token': None, 'my.url': 'http://d:*****@f/g'}
    """
    return {
        key: HIDDEN if is_secret(str(key)) and value is not None and not isinstance(value, bool) else shown(value)
        for key, value in conf.items()
    }


def shown(value: Any) -> Any:
    """Returns any value of a configuration, or any other made of strings, lists and mappings, to show."""
    if isinstance(value, str):
        return scrubbed(value)
    if isinstance(value, Mapping):
        return hidden(value)
    return [shown(item) for item in value] if isinstance(value, (list, tuple)) else value
