"""What Spring XD's own parsers take means the same here, and what they refuse is refused with a position.

The definitions are those of the behaviour of Spring XD 1.3's parsers and of its guide.
"""

from __future__ import annotations

import pytest

from storm_on_spark.xd.dsl import Channel, DslError, Flow, Module, Sequence, Stream, Tap, parse_job, parse_stream


def shown(module: Module) -> str:
    """Returns a module as label, name, options and transitions, where the label is not the name."""
    options = "".join(f" {name}=[{value}]" for name, value in module.options)
    options += "".join(f" {each.status}->{each.target}" for each in module.transitions)
    return f"{'' if module.label == module.name else f'{module.label}@'}{module.name}{options}"


def ends(of: Channel | Tap | None) -> str:
    if of is None:
        return ""
    if isinstance(of, Tap):
        return ".".join(["tap", of.kind, of.name, *([of.label] if of.label else [])])
    return f"{of.kind}.{of.name}"


def read(stream: Stream) -> str:
    """Returns a stream in another notation than its own."""
    middle = " -> ".join(map(shown, stream.modules))
    parts = [ends(stream.source), middle, ends(stream.sink)]
    name = f"{stream.name}: " if stream.name else ""
    return name + " => ".join(part for part in parts if part)


GOOD_STREAMS = [
    ("foo", "foo"),
    ("gemfire-cq", "gemfire-cq"),
    ("mystream = foo", "mystream: foo"),
    ("foo--bar=yyy", "foo--bar: yyy"),
    ("foo-bar=yyy", "foo-bar: yyy"),
    ("foo | bar", "foo -> bar"),
    ("boo | blah | aaak > queue:foo", "boo -> blah -> aaak => queue.foo"),
    # Labels.
    ("label: http", "label@http"),
    ("food = http | label3: foo", "food: http -> label3@foo"),
    ("http | foo:bar | file", "http -> foo@bar -> file"),
    ("file | out: file", "file -> out@file"),
    ("wibble: http > queue:bar", "wibble@http => queue.bar"),
    (
        "mystream = http | filter | group1: transform | group2: transform | file",
        "mystream: http -> filter -> group1@transform -> group2@transform -> file",
    ),
    # Options.
    ("foo --name=value", "foo name=[value]"),
    ("foo --name=value --x=y", "foo name=[value] x=[y]"),
    ("foo --x=1a2b --y=two ", "foo x=[1a2b] y=[two]"),
    ("foo --name.sub=value", "foo name.sub=[value]"),
    ("foo --name=4:5abcdef --xx=(aaa)bbc%32", "foo name=[4:5abcdef] xx=[(aaa)bbc%32]"),
    ("myhttp --port=9010| file", "myhttp port=[9010] -> file"),
    ("myhttp --port=9010> queue:a", "myhttp port=[9010] => queue.a"),
    ("transform --a1=${foo:default} --b1=${bar}", "transform a1=[${foo:default}] b1=[${bar}]"),
    ('trigger --payload={"param1":"x"} --fixedDelay=5 | log', 'trigger payload=[{"param1":"x"}] fixedDelay=[5] -> log'),
    # Quotes around a value.
    (
        "gemfire-cq --query='Select * from /Stocks where symbol=''VMW''' --regionName=foo",
        "gemfire-cq query=[Select * from /Stocks where symbol='VMW'] regionName=[foo]",
    ),
    ("foo --bar='payload.matches(''hello'')' | file", "foo bar=[payload.matches('hello')] -> file"),
    ("foo --name=\"i have a 'string' inside\"", "foo name=[i have a 'string' inside]"),
    ("foo --name='i have a \"string\" inside'", 'foo name=[i have a "string" inside]'),
    ("a | t --outputType='text/plain|charset=UTF-8'  | b", "a -> t outputType=[text/plain|charset=UTF-8] -> b"),
    ("a | t --outputType='text/plain;charset=UTF-8'  | b", "a -> t outputType=[text/plain;charset=UTF-8] -> b"),
    ("foo | filter --expression='n > 4'> queue:c", "foo -> filter expression=[n > 4] => queue.c"),
    ("a | transform --expression='''Hello, world!''' | b", "a -> transform expression=['Hello, world!'] -> b"),
    ("a | transform --expression=\"'Hello, world!'\" | b", "a -> transform expression=['Hello, world!'] -> b"),
    ("a | transform --expression=\"''''hi''''\" | b", "a -> transform expression=[''''hi''''] -> b"),
    ("a | transform --expression='payload+''hi''' | b", "a -> transform expression=[payload+'hi'] -> b"),
    ("a | transform --expression='''hi''+payload' | b", "a -> transform expression=['hi'+payload] -> b"),
    ("a | t --expression='p.replace(\"abc\", '''')' | b", "a -> t expression=[p.replace(\"abc\", '')] -> b"),
    ("a | t --expression='p.replace(\"abc\", \"\")' | b", 'a -> t expression=[p.replace("abc", "")] -> b'),
    # Quotes amid a value, which are part of it.
    ("foo | transform --expression=--payload | bar", "foo -> transform expression=[--payload] -> bar"),
    ("a | transform --expression='hi'+payload | b", "a -> transform expression=['hi'+payload] -> b"),
    ("a | transform --expression=payload+'hi' | b", "a -> transform expression=[payload+'hi'] -> b"),
    ("a | transform --expression='hi'+'world' | b", "a -> transform expression=['hi'+'world'] -> b"),
    ("a | transform --expression=\"'hi'+'world'\" | b", "a -> transform expression=['hi'+'world'] -> b"),
    ("a | transform --expression=p+'hi'--param2='x' | b", "a -> transform expression=[p+'hi'--param2='x'] -> b"),
    ("a | transform --expression='hi'+p--param2='x' | b", "a -> transform expression=['hi'+p--param2='x'] -> b"),
    ("foo --bar=payload.matches('hello world')", "foo bar=[payload.matches('hello world')]"),
    ("foo --bar=payload.matches('hello\tworld')", "foo bar=[payload.matches('hello\tworld')]"),
    ('foo --bar=payload.matches("\'")', 'foo bar=[payload.matches("\'")]'),
    ('foo --bar=payload.matches("hello\t  world")', 'foo bar=[payload.matches("hello\t  world")]'),
    ("foo --bar=payload.matches('a|b') | log", "foo bar=[payload.matches('a|b')] -> log"),
    ("http | filter --expression=payload.length()>4 | log", "http -> filter expression=[payload.length()>4] -> log"),
    ("http | filter --expression=payload=='good' | log", "http -> filter expression=[payload=='good'] -> log"),
    (
        "a | filter --expression=#jsonPath(payload,'$.firstName').contains('John') | b",
        "a -> filter expression=[#jsonPath(payload,'$.firstName').contains('John')] -> b",
    ),
    (
        "a | aggregator --count=3 --aggregation=T(a.B).join(#this.![payload],' ') | b",
        "a -> aggregator count=[3] aggregation=[T(a.B).join(#this.![payload],' ')] -> b",
    ),
    # Channels and taps.
    ("queue:foobar > file", "queue.foobar => file"),
    ("topic:foo > goo | blah | file", "topic.foo => goo -> blah -> file"),
    ("http > queue:foo", "http => queue.foo"),
    ("queue:bar > topic:boo", "queue.bar => bridge => topic.boo"),
    ("trigger --cron='0/5 * * * * *'  > queue:job:myCronJob", "trigger cron=[0/5 * * * * *] => queue.job:myCronJob"),
    ("tap:stream:mystream > file", "tap.stream.mystream => file"),
    ("tap:stream:mystream.group1 > file", "tap.stream.mystream.group1 => file"),
    ("tap:queue:xxy > file", "tap.queue.xxy => file"),
    ("tap:topic:xxy > file", "tap.topic.xxy => file"),
    ("tap:job:myHttpJob >log", "tap.job.myHttpJob => log"),
    ("tap:job:myHttpJob.job >log", "tap.job.myHttpJob.job => log"),
    ("myhttp = queue:foo > filter --name=payload", "myhttp: queue.foo => filter name=[payload]"),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "meaning"), GOOD_STREAMS)
def test_a_stream_of_spring_xd_means_the_same(definition: str, meaning: str) -> None:
    assert read(parse_stream(definition)) == meaning


BAD_STREAMS = [
    ("", 0),
    (".", 0),
    (";", 0),
    ("|", 0),
    ("--foo = bar", 0),
    ("* = http | file", 0),
    (": = http | file", 0),
    (":foo | bar", 0),
    ("foo bar=yyy", 4),
    ("foo bar", 4),
    ("test | foo--x=13", 13),
    ("foo --", 4),
    ("foo --bar", 4),
    ("foo --bar=", 10),
    ("foo -- name=value", 4),
    ("foo --name =value", 4),
    ("foo --name= value", 11),
    ("foo --name.=value", 4),
    ("foo --name .sub=value", 4),
    ("foo --name. sub=value", 4),
    ("foo | transform --expression=new StringBuilder(payload).reverse() | bar", 33),
    ("foo |  transform --expression=''Hello, world!'' | bar", 39),
    ("foo --x='never closed | bar", 8),
    # Labels.
    ("http | foo :bar | file", 11),
    ("http | foo: goggle: bar | file", 18),
    ("label: label2: http | label3: foo", 13),
    ("xxx: http | xxx: file", 12),
    ("xxx: http | yyy: filter | transform | xxx: transform | file", 38),
    ("http | filter | transform | transform | file", 28),
    ("bar = foo | bar", 12),
    # Channels and taps.
    ("foo > bar", 6),
    ("foo >", 5),
    ("foo > --2323", 6),
    ("foo > *", 6),
    ("trigger > job:foo", 10),
    ("trigger > :job:foo", 10),
    ("trigger > queue:job:myjob   too", 28),
    ("myhttp = filter > :foo", 18),
    ("http > queue:wibble.foo", 19),
    ("queue: bar > file", 0),
    ("queue : bar > file", 6),
    ("queue :bar > file", 6),
    ("queue:foo.bar > file", 9),
    ("tap:queue: boo > file", 0),
    ("tap:queue :boo > file", 0),
    ("tap:stream:boo .xx > file", 15),
    ("tap:stream:boo . xx > file", 15),
    ("tap:stream:boo. xx > file", 14),
    ("tap:stream:boo.xx. yy > file", 17),
    ("tap:stream:boo.xx .yy > file", 18),
    ("tap:queue:boo.xx.yy > file", 13),
    ("tap:banana:yyy > file", 0),
    ("tap:xxx > file", 0),
]


@pytest.mark.parametrize(("definition", "position"), BAD_STREAMS)
def test_what_spring_xd_refuses_is_refused_at_a_position(definition: str, position: int) -> None:
    with pytest.raises(DslError) as raised:
        parse_stream(definition)
    assert raised.value.position == position


@pytest.mark.parametrize("name", ["foo.bar", "-bar", ".bar", "foo-.-bar", "0foobar", "foo%bar"])
def test_a_name_that_spring_xd_refuses_is_refused(name: str) -> None:
    with pytest.raises(DslError) as raised:
        parse_stream("http | transform | sink", name)
    assert raised.value.position == 0


@pytest.mark.parametrize("name", ["foo-bar", "foo_bar"])
def test_a_name_that_spring_xd_takes_is_taken(name: str) -> None:
    assert parse_stream("http | transform | sink", name).name == name


def steps(flow: Flow) -> str:
    """Returns a job in another notation than its own."""
    if isinstance(flow, Module):
        return shown(flow)
    if isinstance(flow, Sequence):
        asides = f"; {', '.join(map(steps, flow.asides))}" if flow.asides else ""
        return f"[{', '.join(map(steps, flow.parts))}{asides}]"
    return f"{{{', '.join(map(steps, flow.branches))}}}"


@pytest.mark.parametrize(
    ("definition", "meaning"),
    [
        ("foojob", "foojob"),
        ("A||B", "[A, B]"),
        ("<A&B>", "{A, B}"),
        ("<A||B&C>", "{[A, B], C}"),
        ("jobA || jobB || jobC", "[jobA, jobB, jobC]"),
        ("jobA || (jobB || jobC)", "[jobA, jobB, jobC]"),
        ("<(jobA || jobB || jobC) & jobD>", "{[jobA, jobB, jobC], jobD}"),
        ("<<jobA & jobB> & jobC>", "{{jobA, jobB}, jobC}"),
        ("<jobA & <jobB & jobC> & jobD>", "{jobA, {jobB, jobC}, jobD}"),
        ("<jobA & jobB || jobC & jobD>", "{jobA, [jobB, jobC], jobD}"),
        ("<a & b> || foo || <c & d>", "[{a, b}, foo, {c, d}]"),
        ("<aaa & bbb || <ccc & ddd>> || <eee & fff>", "[{aaa, [bbb, {ccc, ddd}]}, {eee, fff}]"),
        ("<aaa\n  & bbb\n> || ccc", "[{aaa, bbb}, ccc]"),
        ("foo || bar || boo --zz='abc' --timeout=100 ", "[foo, bar, boo zz=[abc] timeout=[100]]"),
        # Splits with labels and options.
        ("<x: a --p=1 & y: a --q='v w'>|| b", "[{x@a p=[1], y@a q=[v w]}, b]"),
        ("<a --p=f('x & y')& b --q=n>4> || c", "[{a p=[f('x & y')], b q=[n>4]}, c]"),
        ("<(a || b --p=f(1)) & c --q='hi'+p>", "{[a, b p=[f(1)]], c q=['hi'+p]}"),
        ("<<a & b --p=2>>", "{{a, b p=[2]}}"),
        # Names.
        ("a.b.c", "a.b.c"),
        ("a_b.c", "a_b.c"),
        ("a_b_c", "a_b_c"),
        # A step that is there again gets a number.
        ("foo || foo", "[foo, foo1@foo]"),
        ("<foo & foo>", "{foo, foo1@foo}"),
        ("foo || <foo & foo>", "[foo, {foo1@foo, foo2@foo}]"),
        ("foo || bar || foo || <goo & foo> || foo", "[foo, bar, foo1@foo, {goo, foo2@foo}, foo3@foo]"),
        # Transitions.
        ("jobA | BROKEN=$END", "[jobA BROKEN->$END]"),
        ("jobA|BROKEN=$END", "[jobA BROKEN->$END]"),
        ("jobA |BROKEN =$FAIL", "[jobA BROKEN->$FAIL]"),
        ("jobA |BROKEN= $FAIL", "[jobA BROKEN->$FAIL]"),
        ("jobA|BROKEN=$END|'*'=something", "[jobA BROKEN->$END *->something; something]"),
        ("<(xx | '*'=$END) & yy>", "{[xx *->$END], yy}"),
        ("foo | completed = bar | wibble=wobble", "[foo completed->bar wibble->wobble; bar, wobble]"),
        ('foo | "*" = wibble', "[foo *->wibble; wibble]"),
        ("foo | 'abc def' = bar", "[foo abc def->bar; bar]"),
        ("<foo | completed=kill & bar>", "{[foo completed->kill; kill], bar}"),
        ("<foo\n  | 'completed'=kill\n  | '*' = gone\n  & bar>", "{[foo completed->kill *->gone; kill, gone], bar}"),
        ("foo || bar | failed = goo", "[foo, bar failed->goo; goo]"),
        ("<a & b> || foo | wibble = $END || <c & d>", "[{a, b}, foo wibble->$END, {c, d}]"),
        (
            "aaa | COMPLETED = kill | FOO = bar || bbb | COMPLETED = kill || ccc",
            "[aaa COMPLETED->kill FOO->bar, bbb COMPLETED->kill, ccc; kill, bar]",
        ),
        # One target of a sequence is one step; another branch has its own.
        (
            "foo | failed = bbb | error = bbb || bar | failed = bbb",
            "[foo failed->bbb error->bbb, bar failed->bbb; bbb]",
        ),
        ("<foo | failed = boo & bar | failed = boo>", "{[foo failed->boo; boo], [bar failed->boo1; boo1@boo]}"),
        (
            "<foo | failed = boo | error = boo || goo & bar | failed = boo>",
            "{[foo failed->boo error->boo, goo; boo], [bar failed->boo1; boo1@boo]}",
        ),
        ("<foo | completed=goo & bar> || boo || goo", "[{[foo completed->goo1; goo1@goo], bar}, boo, goo]"),
        ("<foo | completed=hoo & bar> || boo || goo", "[{[foo completed->hoo; hoo], bar}, boo, goo]"),
        # A target that comes later in the sequence is that step.
        ("aaa | failed = ccc || bbb || ccc || ddd", "[aaa failed->ccc, bbb, ccc, ddd]"),
        (
            "aaa | foo = $END | B = bbb | '*' = ccc || bbb || ccc",
            "[aaa foo->$END B->bbb *->ccc, bbb, ccc]",
        ),
        ("aaa | FOO = XXX | B = bbb | '*' = ccc || bbb || ccc", "[aaa FOO->XXX B->bbb *->ccc, bbb, ccc; XXX]"),
        ("aaa|| bbb || farg | 'FAILED'=ccc ||ddd", "[aaa, bbb, farg FAILED->ccc, ddd; ccc]"),
        (
            "aaa | 'FAILED'=iii ||< bbb | 'FAILED'=iii|| zzz  & ccc | 'FAILED'=jjj> ||ddd| 'FAILED'=iii||<ggg| "
            "'FAILED'=kkk | '*'=$END& hhh| 'FAILED'=kkk>",
            "[aaa FAILED->iii, {[bbb FAILED->iii1, zzz; iii1@iii], [ccc FAILED->jjj; jjj]}, ddd FAILED->iii, "
            "{[ggg FAILED->kkk *->$END; kkk], [hhh FAILED->kkk1; kkk1@kkk]}; iii]",
        ),
        (
            "<(sqoop-6e44 | 'FAILED' = kill1  || sqoop-e07a | 'FAILED' = kill1) &  (sqoop-6420 | 'FAILED' = kill3)>",
            "{[sqoop-6e44 FAILED->kill1, sqoop-e07a FAILED->kill1; kill1], [sqoop-6420 FAILED->kill3; kill3]}",
        ),
    ],
)
def test_a_job_of_spring_xd_means_the_same(definition: str, meaning: str) -> None:
    assert steps(parse_job(definition).flow) == meaning


@pytest.mark.parametrize(
    ("definition", "position"),
    [
        ("<aaa & bbb & ccc> || <ddd & eee fff>", 32),
        ("<aa && bb>", 5),
        ("aa  |||| bb", 6),
        ("aa  ||| bb", 6),
        ("<a x --aaa=bbb & b> || foo", 3),
        ("jobModuleA jobNameA", 11),
        ("<a & b> rubbish", 8),
        ("foo | || = bar", 6),
        ("foo | abc def = bar", 10),
        ("<a & b y --aaa=bbb --ccc=ddd> || foo", 7),
        ("foo bar --aaa=bbb | completed = bar | wibble=wobble", 4),
        ("jobModuleA jobNameA --foo=bar --boo=gar", 11),
        # A parser of Spring XD's takes nothing at all, which none of its jobs can be.
        (" ", 1),
        # An asterisk alone is no exit status there, either.
        ("foo | * = bar", 6),
        ("foo || transform --expression=new StringBuilder(payload).reverse() || bar", 34),
        ("foo || transform bar --expression=x || bar", 17),
        ("(a || b", 7),
        ("a || b)", 6),
        ("<a & (b> & c)", 7),
    ],
)
def test_a_job_that_is_none_is_refused_at_a_position(definition: str, position: int) -> None:
    with pytest.raises(DslError) as raised:
        parse_job(definition)
    assert raised.value.position == position
