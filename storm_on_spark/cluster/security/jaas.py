"""JAAS files (`java.security.auth.login.config`): sections for logins at a Pacemaker and over Thrift. Parsed strictly.

    PacemakerServer {
        com.sun.security.auth.module.Krb5LoginModule required
        useKeyTab=true
        keyTab="/etc/keytabs/pacemaker.keytab"
        principal="pacemaker@MY.COMPANY.COM";
    };

The name of a module and its flag may be left out, as in the example of `PacemakerDigest` in Storm's documentation.
Grammar: the documentation of Java's class `javax.security.auth.login.Configuration`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.security.tokens import read_secret_file

_TOKEN: Final = re.compile(
    r'(?P<blank>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<word>[A-Za-z0-9_$*./:@-]+)|"(?P<text>(?:[^"\\\n]|\\["\\])*)"|(?P<mark>[{};=])',
    re.DOTALL,
)
_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_OPTIONS: Final = {
    "PacemakerDigest": frozenset({"username", "password"}),
    "PacemakerServer": frozenset(
        {"useKeyTab", "keyTab", "storeKey", "useTicketCache", "serviceName", "principal", "doNotPrompt", "debug"}
    ),
    "PacemakerClient": frozenset(
        {"useKeyTab", "keyTab", "storeKey", "useTicketCache", "serviceName", "principal", "doNotPrompt", "debug"}
    ),
}
"""What the sections that count here may hold. Other sections may hold anything: the file is for other programs too."""
USER: Final = "user_"
"""Begins an option that is a user's name and has the password as its value, in Storm's section `StormServer`."""
_SWITCHES: Final = frozenset({"useKeyTab", "storeKey", "useTicketCache", "doNotPrompt", "debug"})


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str
    line: int
    column: int


def read_jaas(path: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Returns the sections of a file, which only its owner may read: it holds passwords.

    Raises:
        SetupError: it can't be read, or is not a JAAS file; says at which line and column.
    """
    return parse_jaas(read_secret_file(path, "JAAS file"), str(path))


def parse_jaas(text: str, where: str = "JAAS file") -> dict[str, dict[str, str]]:
    r"""Returns the options of each section.

    Args:
        text: of a file.
        where: its name, for errors.

    Raises:
        SetupError: it is not a JAAS file; says at which line and column. What stands in quotes, or behind
            a password, is never in an error.

    Example:
        >>> parse_jaas('PacemakerDigest {\n  username="ann"\n  password="pw";\n};')
        {'PacemakerDigest': {'username': 'ann', 'password': 'pw'}}
        >>> parse_jaas('PacemakerDigest {\n  username=;\n};')
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.SetupError: JAAS file, line 2, column 12: expected a value, not ';'
    """
    return _Parser(text, where).sections()


def switch(options: Mapping[str, str], name: str) -> bool:
    """Returns an option that is `true` or `false`; false if it is not there."""
    return options.get(name, "false").lower() == "true"


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._tokens = self._split(text)
        self._at = 0
        #: Whether the section has had a password: without quotes, some of it may look like something else.
        self._secret = False

    def sections(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        while self._next.kind != "end":
            name = self._take("word", "the name of a section")
            if name.text in found:
                raise self._wrong(name, f"section {name.text} is there twice")
            self._mark("{")
            options: dict[str, str] = {}
            self._secret = False
            while self._next.text != "}" or self._next.kind != "mark":
                self._entry(name.text, options)
            self._mark("}")
            self._mark(";")
            found[name.text] = options
        return found

    def _entry(self, section: str, options: dict[str, str]) -> None:
        first = self._take("word", "a module, an option or }")
        if self._next.kind == "word":
            flag = self._take("word", "a flag")
            if flag.text.lower() not in _FLAGS:
                due = f"expected a flag, one of {', '.join(sorted(_FLAGS))}"
                raise self._wrong(flag, f"{due}, not {self._shown(flag)}")
        else:
            self._option(section, first, options)
        while self._next.kind == "word":
            self._option(section, self._take("word", "an option"), options)
        self._mark(";")

    def _option(self, section: str, name: _Token, options: dict[str, str]) -> None:
        known = _OPTIONS.get(section)
        if known is not None and name.text not in known:
            known_ones = ", ".join(sorted(known))
            raise self._wrong(name, f"{section} has no option {self._shown(name)}; it has {known_ones}")
        if name.text in options:
            raise self._wrong(name, f"option {name.text} occurs twice")
        self._mark("=")
        self._secret = self._secret or "password" in name.text.lower() or name.text.startswith(USER)
        value = self._next
        if value.kind not in ("word", "text"):
            raise self._wrong(value, f"expected a value, not {self._shown(value)}")
        self._at += 1
        if "${" in value.text:
            raise self._wrong(value, "${...} stands for a property of Java, which is not known here")
        if known is not None and name.text in _SWITCHES and value.text.lower() not in ("true", "false"):
            raise self._wrong(value, f"{name.text} must be true or false")
        options[name.text] = value.text

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, kind: str, due: str) -> _Token:
        token = self._next
        if token.kind != kind:
            raise self._wrong(token, f"expected {due}, not {self._shown(token)}")
        self._at += 1
        return token

    def _mark(self, mark: str) -> None:
        token = self._next
        if token.kind != "mark" or token.text != mark:
            raise self._wrong(token, f"expected {mark!r}, not {self._shown(token)}")
        self._at += 1

    def _split(self, text: str) -> list[_Token]:
        tokens: list[_Token] = []
        at, line, begin = 0, 1, 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            here = _Token("?", text[at], line, at - begin + 1)
            if match is None:
                what = "a text without its second quote" if text[at] == '"' else f"{text[at]!r} has no meaning here"
                raise self._wrong(here, what)
            kind = str(match.lastgroup)
            if match[0].startswith("/*") and not match[0].endswith("*/", 2):
                raise self._wrong(here, "a comment without its end")
            if kind != "blank":
                found = re.sub(r"\\(.)", r"\1", match[kind]) if kind == "text" else match[kind]
                tokens.append(_Token(kind, found, line, here.column))
            lines = match[0].count("\n")
            if lines:
                line, begin = line + lines, at + match[0].rindex("\n") + 1
            at = match.end()
        return [*tokens, _Token("end", "", line, at - begin + 1)]

    def _wrong(self, token: _Token, what: str) -> SetupError:
        return SetupError(f"{self._where}, line {token.line}, column {token.column}: {what}")

    def _shown(self, token: _Token) -> str:
        if token.kind == "end":
            return "the end of the file"
        if token.kind == "text":
            return "a text in quotes"
        return "a word" if self._secret and token.kind == "word" else f"{token.text!r:.60}"
