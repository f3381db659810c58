"""Sessions of browsers: one code, one browser, once; and what is bounded."""

from __future__ import annotations

from storm_on_spark.web.access.sessions import Sessions


def test_a_code_begins_one_session_and_no_second() -> None:
    sessions = Sessions()
    code = sessions.new_code("reader", "bob")
    cookie = sessions.redeem(code)
    assert cookie is not None
    found = sessions.find(cookie)
    assert found is not None
    assert (found.name, found.role) == ("bob", "reader")
    assert sessions.redeem(code) is None
    sessions.end(cookie)
    assert sessions.find(cookie) is None


def test_codes_and_sessions_come_to_an_end() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    late, code = sessions.new_code("reader", "bob", secs=60), sessions.new_code("operator", "ada")
    cookie = sessions.redeem(code)
    assert cookie is not None
    now[0] = 61.0
    assert sessions.redeem(late) is None
    assert sessions.find(cookie) is not None
    now[0] = 8 * 86_400.0
    assert sessions.find(cookie) is None


def test_sessions_and_codes_are_bounded() -> None:
    sessions = Sessions()
    first = sessions.begin("reader", "first")
    cookies = [sessions.begin("reader", str(at)) for at in range(1000)]
    assert sessions.find(first) is None
    assert all(sessions.find(cookie) is not None for cookie in cookies)
    code = sessions.new_code("reader", "first")
    for _ in range(100):
        sessions.new_code("reader", "more")
    assert sessions.redeem(code) is None


def test_after_many_failures_nobody_may_try_for_a_while() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    for _ in range(20):
        assert sessions.may_try()
        sessions.failed()
    assert not sessions.may_try()
    now[0] = 61.0
    assert sessions.may_try()
