"""SASL DIGEST-MD5 (RFC 2831) as Storm uses it: both sides as pure functions, without a security layer.

    server                                     client
    challenge(nonce)            ->
                                <-             Answering(login).answer(challenge)
    verify(answer, nonce, secret) -> rspauth   Answering.check(rspauth)

Storm has two dialects. At a Pacemaker (`PACEMAKER`) the realm is `default` and the service `null`; a login's name goes
over the wire in base64, and its secret is used in base64 as the password. Over Thrift (`THRIFT`) both are used as they
are. MD5 is Storm's choice: use a network of your own where others may listen.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from typing import Final

import msgspec

from storm_on_spark.cluster.errors import AuthenticationError

_MOST_BYTES: Final = 2048
"""Of a challenge (RFC 2831) and more than any answer has."""
_PAIR: Final = re.compile(r'\s*([A-Za-z][A-Za-z-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",\\]+))\s*(?:,|\Z)')
_ONCE: Final = frozenset({"username", "realm", "nonce", "cnonce", "nc", "response", "qop", "digest-uri", "rspauth"})


class Login(msgspec.Struct, frozen=True):
    """A name and a secret."""

    name: str
    secret: str

    def __repr__(self) -> str:
        return f"Login({self.name!r})"


class Dialect(msgspec.Struct, frozen=True):
    """What differs between the logins of two services."""

    realm: str
    service: str
    """Name of the service, the first part of a `digest-uri`."""
    host: str | None
    """The second part, which a server compares; None to take any: clients name the host as they reached it."""
    encodes: bool
    """Whether name and secret are in base64."""

    def uri(self, host: str = "localhost") -> str:
        """Returns a `digest-uri`.

        Args:
            host: of the server, where the dialect has no fixed one.
        """
        return f"{self.service}/{self.host or host}"

    def takes(self, uri: str) -> bool:
        """Tells whether a login with that `digest-uri` is for this service."""
        service, _, host = uri.partition("/")
        return service == self.service and (host == self.host if self.host else bool(host))


# Java writes the service as `null`, as Storm names none.
PACEMAKER: Final = Dialect("default", "null", "default", encodes=True)
THRIFT: Final = Dialect("localhost", "storm_thrift_server", None, encodes=False)


def storm_secret(username: str, password: str) -> str:
    """Returns the secret that Storm makes of the section `PacemakerDigest` of a JAAS file.

    Example:
        >>> storm_secret("ann", "pw")[:16]
        '779add49d2bd807d'
    """
    return hashlib.sha512(f"{username}:{password}".encode()).hexdigest()


def new_nonce() -> str:
    """Returns what a challenge is good for once."""
    return base64.b64encode(secrets.token_bytes(24)).decode()


def challenge(nonce: str, dialect: Dialect = PACEMAKER) -> bytes:
    """Returns a server's challenge, as Java's server writes it."""
    return f'realm="{dialect.realm}",nonce="{nonce}",charset=utf-8,algorithm=md5-sess'.encode()


class Answer(msgspec.Struct, frozen=True):
    """What a client answers to a challenge, checked but for its secret."""

    username: str
    """As it came."""
    realm: str
    nonce: str
    cnonce: str
    uri: str
    response: str
    dialect: Dialect = PACEMAKER

    @property
    def name(self) -> str:
        """The login's name."""
        if not self.dialect.encodes:
            return self.username
        try:
            return base64.b64decode(self.username, validate=True).decode()
        except ValueError:
            raise AuthenticationError("the username of a login must be UTF-8 text in base64") from None


def read_answer(data: bytes, nonce: str, dialect: Dialect = PACEMAKER) -> Answer:
    """Returns what a client answers.

    Args:
        data: its token.
        nonce: of the challenge.
        dialect: of the server.

    Raises:
        AuthenticationError: it is not an answer to that challenge.
    """
    pairs = pairs_of(data)
    wrong = sorted({"username", "nonce", "cnonce", "nc", "response", "digest-uri"} - set(pairs))
    if wrong:
        raise AuthenticationError(f"the answer to a challenge lacks {', '.join(wrong)}")
    if pairs["nc"] != "00000001" or not hmac.compare_digest(pairs["nonce"].encode(), nonce.encode()):
        raise AuthenticationError("the login answers another challenge than the one this server sent")
    if pairs.get("qop", "auth") != "auth" or pairs.get("realm", "") not in (dialect.realm, "") or "authzid" in pairs:
        raise AuthenticationError(f"a login must have qop auth, realm {dialect.realm} and no authzid")
    if not dialect.takes(pairs["digest-uri"]):
        raise AuthenticationError(f"the login is for {pairs['digest-uri']!r:.60}, but this server is {dialect.uri()}")
    return Answer(
        pairs["username"],
        pairs.get("realm", ""),
        pairs["nonce"],
        pairs["cnonce"],
        pairs["digest-uri"],
        pairs["response"],
        dialect,
    )


def verify(answer: Answer, secret: str) -> bytes | None:
    """Returns the server's last token if the client knows the secret; None if it doesn't."""
    if hmac.compare_digest(_response(answer, secret, "AUTHENTICATE").encode(), answer.response.encode()):
        return f"rspauth={_response(answer, secret, '')}".encode()
    return None


class Answering:
    """A client's login, on one connection.

    Args:
        login: name and secret.
        cnonce: the client's random part; None for a new one.
        dialect: of the server.

    Example:
        >>> login, nonce = Login("words-1", "its secret"), new_nonce()
        >>> client = Answering(login)
        >>> answer = read_answer(client.answer(challenge(nonce)), nonce)
        >>> answer.name, verify(answer, "another") is None
        ('words-1', True)
        >>> client.check(verify(answer, "its secret"))
    """

    def __init__(self, login: Login, cnonce: str | None = None, dialect: Dialect = PACEMAKER) -> None:
        self._dialect = dialect
        self._login = login
        self._cnonce = new_nonce() if cnonce is None else cnonce
        self._answer: Answer | None = None

    def answer(self, data: bytes) -> bytes:
        """Returns the answer to a server's challenge.

        Raises:
            AuthenticationError: it is not a challenge of Storm's kind.
        """
        pairs = pairs_of(data)
        if "nonce" not in pairs or pairs.get("algorithm") != "md5-sess":
            raise AuthenticationError("a server's challenge lacks a nonce, or its algorithm is not md5-sess")
        if "auth" not in re.split(r"[,\s]+", pairs.get("qop", "auth")):
            raise AuthenticationError("the server asks for a SASL security layer, which is not supported; use TLS")
        realm = pairs.get("realm", "")
        name, uri = self._login.name, self._dialect.uri()
        username = base64.b64encode(name.encode()).decode() if self._dialect.encodes else name
        answer = Answer(username, realm, pairs["nonce"], self._cnonce, uri, "", self._dialect)
        response = _response(answer, self._login.secret, "AUTHENTICATE")
        self._answer = answer
        return (
            f'charset=utf-8,username="{_quoted(username)}",realm="{_quoted(realm)}",nonce="{_quoted(answer.nonce)}",nc=00000001,'
            f'cnonce="{self._cnonce}",digest-uri="{uri}",maxbuf=65536,response={response},qop=auth'
        ).encode()

    def check(self, data: bytes) -> None:
        """Checks that the server knows the secret, too.

        Raises:
            AuthenticationError: it doesn't.
        """
        right = "" if self._answer is None else _response(self._answer, self._login.secret, "")
        if not right or not hmac.compare_digest(pairs_of(data).get("rspauth", "").encode(), right.encode()):
            raise AuthenticationError("the server does not know the secret of this login")


def _response(answer: Answer, secret: str, method: str) -> str:
    password = base64.b64encode(secret.encode()).decode() if answer.dialect.encodes else secret
    a1 = _md5(b":".join(map(_hashed, (answer.username, answer.realm, password)))).digest()
    a1 += f":{answer.nonce}:{answer.cnonce}".encode()
    a2 = f"{method}:{answer.uri}".encode()
    text = f"{_md5(a1).hexdigest()}:{answer.nonce}:00000001:{answer.cnonce}:auth:{_md5(a2).hexdigest()}"
    return _md5(text.encode()).hexdigest()


def _hashed(text: str) -> bytes:
    """Returns a part of the first hash: ISO 8859-1 where that has all its characters (RFC 2831, 2.1.2.1)."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _md5(data: bytes) -> hashlib._Hash:
    return hashlib.md5(data, usedforsecurity=False)


def pairs_of(data: bytes) -> dict[str, str]:
    """Returns the names and values of a message of a login.

    Raises:
        AuthenticationError: it is too long, no UTF-8 text, or no list of name=value.
    """
    if len(data) > _MOST_BYTES:
        raise AuthenticationError(f"a message of a login may have at most {_MOST_BYTES:,} bytes, not {len(data):,}")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise AuthenticationError("a message of a login is not UTF-8 text") from None
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            raise AuthenticationError(
                f"a message of a login must be a list of name=value; character {at} starts something else"
            )
        name = match[1].lower()
        if name in found and name in _ONCE:
            raise AuthenticationError(f"a message of a login has {name} twice")
        found[name] = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
        at = match.end()
    return found


def _quoted(value: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", value)
