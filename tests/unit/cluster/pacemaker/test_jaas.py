from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.pacemaker.login.identities import LoginSettings, daemon_login
from storm_on_spark.cluster.pacemaker.settings import ServerSettings
from storm_on_spark.cluster.security.jaas import parse_jaas, read_jaas

STORMS = """
// The example of Storm's documentation, and one with everything that Java allows.
PacemakerDigest {
    username="some username"
    password="some password";
};
PacemakerServer {
   com.sun.security.auth.module.Krb5LoginModule required  /* a
   comment */
   useKeyTab=true
   keyTab="/etc/keytabs/pacemaker.keytab"
   storeKey=true
   useTicketCache=false
   principal="pacemaker@MY.COMPANY.COM";
};
Other { a.B sufficient; c.D optional x="\\"\\\\"; };
"""


def test_storms_examples_are_read() -> None:
    assert parse_jaas(STORMS) == {
        "PacemakerDigest": {"username": "some username", "password": "some password"},
        "PacemakerServer": {
            "useKeyTab": "true",
            "keyTab": "/etc/keytabs/pacemaker.keytab",
            "storeKey": "true",
            "useTicketCache": "false",
            "principal": "pacemaker@MY.COMPANY.COM",
        },
        "Other": {"x": '"\\'},
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A {", "line 1, column 4: expected a module, an option or }, not the end of the file"),
        ("A {\n  b.C nonsense;\n};", "line 2, column 7: expected a flag, one of .*, not 'nonsense'"),
        ("A {\n  b = ;\n};", "line 2, column 7: expected a value, not ';'"),
        ("A {\n  b = c\n};", "line 3, column 1: expected ';', not '}'"),
        ("A {\n  b = c;\n}", "line 3, column 2: expected ';', not the end"),
        ("A { b = c; };\nA { };", "line 2, column 1: section A is there twice"),
        ("A { b=c b=d; };", "column 9: option b occurs twice"),
        ('A {\n\tb = "x\ny"; };', "line 2, column 6: a text without its second quote"),
        ('A { b = "secret\\n"; };', "column 9: a text without"),
        ("A # B", "column 3: '#' has no meaning"),
        ('A { b = "${user.home}"; };', "column 9: .* stands for a property"),
        ('PacemakerDigest {\n  user="x";\n};', "line 2, column 3: PacemakerDigest has no option 'user'; it has pass"),
        ("PacemakerServer { useKeyTab=yes; };", "column 29: useKeyTab must be true or false"),
        ('A "text" {', "column 3: expected '{', not a text in quotes"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(SetupError, match=said) as error:
        parse_jaas(text, "x.jaas")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "rest",
    ["a secret;", "a secret=b;", "a;secret;", "a;b secret;", "a;secret;secret;", "a username=b;c=d;secret", "secret{"],
)
@pytest.mark.parametrize("section", ["PacemakerDigest", "Client"])
def test_no_part_of_a_password_without_quotes_is_in_an_error(section: str, rest: str) -> None:
    with pytest.raises(SetupError) as error:
        parse_jaas(f"{section} {{ password={rest}")
    assert "secret" not in str(error.value)


@given(st.text(st.sampled_from('AB {};="\\\n/*$x'), max_size=60))
def test_any_text_is_a_file_or_one_error(text: str) -> None:
    with contextlib.suppress(SetupError):
        parse_jaas(text)


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.jaas"
    file.write_text(STORMS)
    file.chmod(0o644)
    with pytest.raises(SetupError, match="chmod 600"):
        read_jaas(file)
    file.chmod(0o600)
    conf = {"pacemaker.auth.method": "DIGEST", "java.security.auth.login.config": str(file)}
    assert ServerSettings.from_conf(conf).daemon == daemon_login(
        LoginSettings.of({"pacemaker.auth.payload": "some username:some password"})
    )


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"pacemaker.childopts": "-Xmx1g"}, "pacemaker.childopts has options of a JVM"),
        ({"pacemaker.auth.method": "DIGEST"}, "needs one of pacemaker.auth.payload and the section"),
        ({"pacemaker.auth.method": "DIGEST", "pacemaker.auth.payload": "me"}, "not empty"),
        ({"pacemaker.auth.method": "KERBEROS"}, "needs pacemaker.kerberos.principal"),
        (
            {
                "pacemaker.auth.method": "KERBEROS",
                "pacemaker.kerberos.principal": "p@R",
                "pacemaker.kerberos.keytab": "/x",
            },
            "needs pacemaker.kerberos.users",
        ),
    ],
)
def test_a_configuration_that_says_too_little_is_refused(conf: dict[str, object], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        ServerSettings.from_conf(conf)
