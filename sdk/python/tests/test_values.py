# SPDX-License-Identifier: Apache-2.0
"""test_values.py - Values to text and back, and forged texts: none of them runs code, and all of them end."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import pathlib
import pickle
import random
import sys
import uuid

import pytest

from caisson import _arrays, _values
from caisson._encode import NotReturnable, encode
from caisson._values import decode
from caisson.values import Array, BadValue, EnumValue, Frame, Limits, Record, Series, record_class, record_fields

UTC2 = datetime.timezone(datetime.timedelta(hours=2))


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5
    tags: tuple = ()


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


class Level(enum.IntEnum):
    HIGH = 3


Pair = collections.namedtuple("Pair", "first second")


@pytest.fixture(autouse=True)
def nothing_leaks():
    """Replaces the fixture for these hundreds of tests: nothing here can leak."""


@pytest.fixture(params=[pytest.param(False, marks=pytest.mark.slow), True], ids=["with numpy", "without numpy"])
def bare(request, monkeypatch):
    """Run also as on a machine without numpy and pandas."""
    if request.param:
        monkeypatch.setattr(_arrays, "_module", lambda name: None)
    return request.param


def same(a, b):
    """Equal, of the same types at every level; nan equals nan."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (float, complex, decimal.Decimal)):
        return repr(a) == repr(b)  # nan is nan, and 0 is not -0
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(*p) for p in zip(a.items(), b.items()))
    return a == b


PLAIN = [
    None,
    True,
    False,
    0,
    -1,
    2**53 - 1,
    2**53,
    -(2**80),
    10**3000,
    1.5,
    -0.0,
    1e308,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
    "",
    "täxt \U0001f600",
    "\ud800 alone",
    "a\0b",
    b"",
    b"\x00\xff",
    bytearray(b"ab"),
    1 + 2j,
    complex(math.nan, -math.inf),
    [],
    [1, [2, [3]]],
    (),
    (1,),
    ((), [()]),
    {},
    {"a": {"b": None}},
    {"$": "int", "v": "0x1"},
    {1: "a", (2, 3): [4], None: True, b"k": 1.5},
    {"$": 1, 2: 3},
    set(),
    {1, "a", (2,)},
    frozenset((frozenset((1,)),)),
    range(3),
    range(10, -5, -3),
    range(0, 2**70, 2**60),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 678),
    datetime.datetime(2026, 1, 2, tzinfo=UTC2),
    datetime.datetime(2026, 10, 25, 2, 30, fold=1),
    datetime.date(1, 1, 1),
    datetime.time(23, 59, 59, 999999, tzinfo=datetime.timezone.utc),
    datetime.timedelta(-3, 7, 11),
    datetime.timedelta.max,
    decimal.Decimal("1.10"),
    decimal.Decimal("-1E+400"),
    decimal.Decimal("NaN"),
    decimal.Decimal("-Infinity"),
    fractions.Fraction(-22, 7),
    uuid.UUID(int=7),
    pathlib.PurePosixPath("/etc/passwd"),
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda v: repr(v)[:40])
def test_there_and_back(value):
    assert same(decode(encode(value)), value)


def test_all_of_it_is_ascii_json():
    json.loads(encode(PLAIN).encode("ascii"))


def test_subclasses_are_what_they_are_made_of():
    value = collections.OrderedDict(a=collections.Counter("aab"), b=collections.defaultdict(list, x=[1]))
    assert decode(encode(value)) == {"a": {"a": 2, "b": 1}, "b": {"x": [1]}}
    assert type(decode(encode(Level.HIGH))) is EnumValue


def test_paths_of_the_sandbox_are_no_paths_of_this_machine():
    got = decode(encode(pathlib.Path("/etc/passwd")))
    assert type(got) is pathlib.PurePosixPath and not hasattr(got, "read_text")


def test_records():
    got = decode(encode([Point(1, tags=(2, 3)), Pair("a", [Pair(1, 2)]), Colour.BLUE]))
    assert isinstance(got[0], Record) and (got[0].x, got[0].y, got[0].tags) == (1, 0.5, (2, 3))
    assert record_class(got[0]).endswith("Point") and record_fields(got[0]) == {"x": 1, "y": 0.5, "tags": (2, 3)}
    assert got[1].second[0].first == 1
    assert got[2] == EnumValue(Colour.__module__ + ".Colour", "BLUE", "b")
    assert copy.deepcopy(got[0]) == got[0] == pickle.loads(pickle.dumps(got[0]))
    with pytest.raises(AttributeError):
        got[0].x = 2
    with pytest.raises(TypeError):
        hash(got[0])


def test_classes_of_the_caller_and_no_others():
    text = encode([Point(1), Colour.RED, Level.HIGH])
    assert decode(text, [Point, Colour, Level]) == [Point(1), Colour.RED, Level.HIGH]
    assert isinstance(decode(text, [Colour])[0], Record)
    for wrong in (
        {"$": "record", "kind": "dataclass", "class": "x.Point", "v": [["x", 1]]},
        {"$": "record", "kind": "dataclass", "class": "x.Point", "v": [["x", 1], ["y", 1], ["tags", 1], ["z", 1]]},
        {"$": "enum", "class": "Colour", "name": "__class__", "v": 1},
        {"$": "enum", "class": "Colour", "name": "mro", "v": 1},
    ):
        with pytest.raises(BadValue):
            decode(json.dumps(wrong), [Point, Colour])
    with pytest.raises(TypeError, match="neither a dataclass nor an enum"):
        decode("1", [dict])


# ---- values without a text --------------------------------------------------------------------------------------------


def test_an_error_says_where_what_and_why():
    for value, where, words in [
        ({"a": [1, {"b": object()}]}, "value['a'][1]['b']", "object"),
        ({"x": (n for n in ())}, "value['x']", "wrap it in list"),
        ([lambda: 1], "value[0]", "function"),
        (Point(1, tags=(sys,)), "value.tags[0]", "module"),
        (2 ** (2**20), "value", "bits"),
    ]:
        with pytest.raises(NotReturnable) as e:
            encode(value)
        assert e.value.where == where and words in str(e.value)


def test_cycles_depth_and_size():
    cycle: list = [1]
    cycle.append({"again": cycle})
    with pytest.raises(NotReturnable, match="contains itself"):
        encode(cycle)
    twice = [1, 2]
    assert decode(encode([twice, twice])) == [twice, twice], "the same object in two places is not a cycle"
    deep: list = []
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(NotReturnable, match="levels deep"):
        encode(deep)
    for large in ("x" * 2000, b"x" * 2000, [0] * 2000, {str(i): i for i in range(500)}, "\U0001f600" * 200):
        with pytest.raises(NotReturnable, match="larger than 1000 bytes"):
            encode(large, 1000)


# ---- numpy and pandas -------------------------------------------------------------------------------------------------


def test_arrays(bare):
    np = pytest.importorskip("numpy")
    for a in (
        np.arange(6, dtype="i2").reshape(2, 3),
        np.array([1.5, np.nan], ">f8"),
        np.array([True, False]),
        np.zeros((0, 3), "u8"),
        np.array(7),
        np.array([1j, 2], "c8"),
        np.arange(24).reshape(2, 3, 4)[:, ::-1, 1],
        np.asfortranarray(np.eye(3)),
        np.array(["2026-01-01"], "M8[s]"),
        np.array([1, 2], "f2"),
    ):
        got = decode(encode(a))
        if bare:
            assert isinstance(got, Array) and got.shape == a.shape
            numbers = a.astype("i8") if a.dtype.kind == "M" else a
            assert repr(got.tolist()) == repr(numbers.tolist())
        else:
            assert (
                got.shape == a.shape and got.dtype == a.dtype.newbyteorder("=") and np.array_equal(got, a, equal_nan=a.dtype.kind in "fc")
            )
            assert got.flags.writeable
    words = np.array([["a", "bc"], ["", "ü"]])
    assert decode(encode(words))[0] == ["a", "bc"] if bare else np.array_equal(decode(encode(words)), words)
    assert decode(encode([np.int64(3), np.float32(0.5), np.bool_(True), np.str_("x")])) == [3, 0.5, True, "x"]
    if not bare:
        assert decode(encode(np.datetime64("2026-01-01", "D"))) == np.datetime64("2026-01-01", "D")
        objects = np.array([1, "a", None], object)
        assert list(decode(encode(objects))) == [1, "a", None]
    for wrong in (np.zeros(2, [("a", "i4")]), np.ma.masked_array([1, 2], [True, False]), np.zeros(2, "g")):
        with pytest.raises(NotReturnable):
            encode(wrong)


@pytest.mark.slow
def test_frames(bare):
    pd = pytest.importorskip("pandas")
    f = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [0.5, None, 2.5],
            "s": ["a", None, "c"],
            "when": pd.to_datetime(["2026-01-01", None, "2026-01-03"]),
            "zone": pd.to_datetime(["2026-01-01T12:00", "2026-01-02T12:00", "2026-01-03T12:00"]).tz_localize("UTC"),
            "kind": pd.Categorical(["u", "v", "u"]),
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            7: [[1], {"a": 2}, ()],
        },
        index=pd.Index(["r1", "r2", "r3"], name="row"),
    )
    got = decode(encode(f))
    if bare:
        assert isinstance(got, Frame) and got.columns == list(f.columns) and got.index == ["r1", "r2", "r3"] and len(got) == 3
        assert got.column("n") == [1, 2, 3] and got.column("i") == [1, None, 3] and got.records()[0]["kind"] == "u"
        s = decode(encode(f["n"]))
        assert isinstance(s, Series) and s.tolist() == [1, 2, 3] and s.name == "n"
        return
    pd.testing.assert_frame_equal(got, f, check_index_type=False)
    pd.testing.assert_series_equal(decode(encode(f["n"])), f["n"])
    many = pd.DataFrame(
        [[1, 2], [3, 4]],
        index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["p", "q"]),
        columns=pd.MultiIndex.from_tuples([("x", 1), ("x", 2)]),
    )
    pd.testing.assert_frame_equal(decode(encode(many)), many)
    pd.testing.assert_frame_equal(decode(encode(pd.DataFrame())), pd.DataFrame(), check_index_type=False, check_column_type=False)
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    pd.testing.assert_frame_equal(decode(encode(twice)), twice)
    stamp = pd.Timestamp("2026-01-02T03:04:05.000006+02:00")
    assert decode(encode([stamp, pd.Timedelta("1s"), pd.NaT]))[:2] == [stamp.to_pydatetime(), datetime.timedelta(seconds=1)]


# ---- forged texts ----------------------------------------------------------------------------------------------------


class Trap(Exception):
    pass


FORGED = [
    '{"$":"object"}',
    '{"$":"__class__"}',
    '{"$":null}',
    '{"$":["int"]}',
    '{"$":{}}',
    '{"$":"pickle","v":"gASV"}',
    '{"$":"tuple"}',
    '{"$":"tuple","v":{}}',
    '{"$":"set","v":[[1]]}',
    '{"$":"set","v":[{"$":"set","v":[]}]}',
    '{"$":"dict","v":[[1]]}',
    '{"$":"dict","v":[[[],1]]}',
    '{"$":"dict","v":[1]}',
    '{"$":"dict","v":{"a":1}}',
    '{"$":"int","v":"12"}',
    '{"$":"int","v":"0x"}',
    '{"$":"int","v":"0x_1"}',
    '{"$":"int","v":7}',
    '{"$":"float","v":"1"}',
    '{"$":"float","v":"infinity"}',
    '{"$":"complex","v":[1]}',
    '{"$":"complex","v":["1","2"]}',
    '{"$":"complex","v":[true,1]}',
    '{"$":"bytes","v":"a"}',
    '{"$":"bytes","v":"\\u00e9"}',
    '{"$":"bytes","v":[1]}',
    '{"$":"decimal","v":"1e1000000"}',
    '{"$":"decimal","v":"__import__"}',
    '{"$":"decimal","v":"1_0"}',
    '{"$":"decimal","v":"\\u0661"}',
    '{"$":"fraction","v":[1,0]}',
    '{"$":"fraction","v":[1]}',
    '{"$":"fraction","v":[1.5,2]}',
    '{"$":"range","v":[0,1,0]}',
    '{"$":"range","v":[0,1]}',
    '{"$":"range","v":[0,1,true]}',
    '{"$":"datetime","v":"yesterday"}',
    '{"$":"datetime","v":"9999-99-99T00:00:00"}',
    '{"$":"date","v":7}',
    '{"$":"time","v":"25:00"}',
    '{"$":"timedelta","v":[99999999999,0,0]}',
    '{"$":"timedelta","v":[1,2]}',
    '{"$":"uuid","v":"x"}',
    '{"$":"path","v":1}',
    '{"$":"enum","class":"a"}',
    '{"$":"enum","class":1,"name":"a","v":1}',
    '{"$":"record","class":"C","v":[["__array_interface__",1]]}',
    '{"$":"record","class":"C","v":[["__class__",1]]}',
    '{"$":"record","class":"C","v":[["a.b",1]]}',
    '{"$":"record","class":"C","v":[["a",1],["a",2]]}',
    '{"$":"record","class":"C","v":[[1,2]]}',
    '{"$":"record","class":"C"}',
    '{"$":"ndarray","dtype":"O","shape":[1],"v":"AAAAAAAAAAA="}',
    '{"$":"ndarray","dtype":"<U1","shape":[1],"v":"AAAAAA=="}',
    '{"$":"ndarray","dtype":"|V8","shape":[1],"v":"AAAAAAAAAAA="}',
    '{"$":"ndarray","dtype":"<i8,O","shape":[1],"v":"AAAAAAAAAAA="}',
    '{"$":"ndarray","dtype":"<f16","shape":[1],"v":"AAAAAAAAAAA="}',
    '{"$":"ndarray","dtype":"<i8","shape":[2],"v":"AAAAAAAAAAA="}',
    '{"$":"ndarray","dtype":"<i8","shape":[-1],"v":"AAAAAAAAAAA="}',
    '{"$":"ndarray","dtype":"<i8","shape":[true],"v":"AAAAAAAAAAA="}',
    '{"$":"ndarray","dtype":"<i8","shape":[1.0],"v":"AAAAAAAAAAA="}',
    '{"$":"ndarray","dtype":"<i8","shape":[%s],"v":""}' % ",".join(["0"] * 65),
    '{"$":"ndarray","dtype":"<i8","shape":[4611686018427387904,4],"v":""}',
    '{"$":"ndarray","dtype":"|b1","shape":[1],"v":"Bw=="}',
    '{"$":"ndarray","dtype":"<M8[as]","shape":[1],"v":"AAAAAAAAAAA="}',
    '{"$":"ndarray","dtype":"object","shape":[3],"items":[1]}',
    '{"$":"ndarray","dtype":"str","shape":[1],"items":[1]}',
    '{"$":"ndarray","dtype":["f8"],"shape":[1],"v":"AAAAAAAAAAA="}',
    '{"$":"frame"}',
    '{"$":"frame","columns":["a"],"names":[null],"index":{"range":[0,1,1],"names":[null]},"v":[]}',
    '{"$":"frame","columns":["a"],"names":[null],"index":{"range":[0,9,1],"names":[null]},"v":[{"as":"object","items":[1]}]}',
    '{"$":"frame","columns":["a"],"names":[null],"index":{"range":[0,1,1],"names":[null]},"v":[{"as":"pickle","items":[1]}]}',
    '{"$":"frame","columns":[["a"]],"names":[null],"index":{"range":[0,1,1],"names":[null]},"v":[{"as":"object","items":[1]}]}',
    '{"$":"frame","columns":[],"names":[null],"index":{"range":[0,999999999999,1],"names":[null]},"v":[]}',
    '{"$":"frame","columns":[],"names":[null],"index":{"range":[0,1,0],"names":[]},"v":[]}',
    '{"$":"frame","columns":["a"],"names":[null],"index":{"range":[0,1,1],"names":[null]},"v":[{"as":"array","v":{"$":"ndarray","dtype":"<i8","shape":[1,1],"v":"AAAAAAAAAAA="}}]}',
    '{"$":"frame","columns":["a"],"names":[null],"index":{"range":[0,1,1],"names":[null]},"v":[{"as":"utc","v":{"$":"tuple","v":[1]}}]}',
    '{"$":"series","name":[],"index":{"range":[0,1,1],"names":[null]},"v":{"as":"object","items":[1]}}',
    '{"$":"series","name":"a","index":[],"v":{"as":"object","items":[1]}}',
    '{"$":"series","name":"a","index":{"tuples":[1],"names":[null]},"v":{"as":"object","items":[1]}}',
    "NaN",
    "Infinity",
    "[1",
    "",
    "{'a':1}",
    "1" * 5000,
    "[" * 100000,
    '{"a":' * 100000,
    "\x00",
    '{"$":"tuple","v":[' * 70 + "1" + "]}" * 70,
    "[" * 65 + "]" * 65,
]


@pytest.mark.parametrize("text", FORGED, ids=lambda t: t[:60])
def test_forged(text, bare):
    with pytest.raises(BadValue):
        decode(text)


def test_numbers_that_would_take_for_ever():
    with pytest.raises(BadValue):
        decode('{"$":"int","v":"0x%s"}' % ("f" * 300000))
    assert decode('{"$":"int","v":"0x%s"}' % ("f" * 262144)).bit_length() == 1 << 20
    with pytest.raises(BadValue):
        decode('{"$":"decimal","v":"%s"}' % ("1" * 20000))
    one_hash = [n * (2**61 - 1) for n in range(5000)]
    assert len({hash(n) for n in one_hash}) == 1
    with pytest.raises(BadValue, match="same hash"):
        decode(encode({n: 0 for n in one_hash[:100]}))
    with pytest.raises(BadValue, match="same hash"):
        decode('{"$":"set","v":[%s]}' % ",".join(encode(n) for n in one_hash))


def test_limits_come_before_the_work():
    with pytest.raises(BadValue, match="larger than"):
        decode("x" * 101, limits=Limits(bytes=100))
    with pytest.raises(BadValue, match="more than 10 values"):
        decode("[" + "[]," * 50 + "[]]", limits=Limits(values=10))


def test_small_texts_that_would_be_large(bare):
    """Rows of an index, frames by the thousand, empty lists: they are counted before they are made."""
    empty = '{"$":"frame","columns":[],"names":[],"index":{"range":[0,%d,1],"names":[]},"v":[]}'
    assert len(decode(empty % 1000)) == 1000
    for text in (
        empty % 5_000_000,
        empty % 10**30,
        "[%s]" % ",".join([empty % 100_000] * 50),
        "[%s]" % ",".join([empty % 0] * 30_000),
        '{"$":"ndarray","dtype":"<i8","shape":[1000000000,0],"v":""}',
        '{"$":"ndarray","dtype":"<i8","shape":[2000,2000,0],"v":""}',
        '{"$":"ndarray","dtype":"str","shape":[1000000000,0],"items":[]}',
    ):
        with pytest.raises(BadValue):
            decode(text)


def test_a_record_fools_no_library():
    """numpy asks objects, not classes, for these names, and would read memory at the address in them."""
    np = pytest.importorskip("numpy")
    record = decode(encode(Point(1)))
    for name in ("__array_interface__", "__array_struct__", "__array__", "__deepcopy__", "__reduce_ex__x", "__del__x"):
        with pytest.raises(AttributeError):
            getattr(record, name)
    assert np.array(record).dtype == object
    forged = Record("C", {"__array_interface__": {"data": (4096, True), "shape": (1,), "typestr": "<i8", "version": 3}})
    assert np.array(forged).dtype == object


# ---- at random -------------------------------------------------------------------------------------------------------


def some_value(r, depth=0):
    leaf = [
        lambda: r.choice(PLAIN),
        lambda: r.randint(-(10**30), 10**30),
        r.random,
        lambda: "".join(chr(r.randrange(0x2000)) for _ in range(r.randrange(8))),
        lambda: r.randbytes(5),
    ]
    if depth > 4 or r.random() < 0.4:
        return r.choice(leaf)()
    make = [
        lambda: [some_value(r, depth + 1) for _ in range(r.randrange(4))],
        lambda: tuple(some_value(r, depth + 1) for _ in range(r.randrange(4))),
        lambda: {r.choice(leaf)() if r.random() < 0.3 else str(r.random()): some_value(r, depth + 1) for _ in range(r.randrange(4))},
        lambda: Point(some_value(r, depth + 1)),
        lambda: {r.random() for _ in range(3)},
    ]
    try:
        return r.choice(make)()
    except TypeError:  # a key that is not hashable
        return None


def mutated(r, node):
    """The node with a wrong part in it."""
    words = [
        *_values.KINDS,
        "v",
        "$",
        "items",
        "shape",
        "dtype",
        "<i8",
        "class",
        "names",
        "index",
        "as",
        "array",
        "category",
        "",
        "__class__",
        0,
        -1,
        1 << 40,
        1.5,
        None,
        True,
        [],
        {},
    ]
    if r.random() < 0.15 or not isinstance(node, (dict, list)) or not node:
        return r.choice(
            [r.choice(words), {"$": r.choice(words), "v": node}, {"$": r.choice(list(_values.KINDS)), "v": [node, node]}, [node] * 2]
        )
    if isinstance(node, list):
        i = r.randrange(len(node))
        return [mutated(r, v) if j == i else v for j, v in enumerate(node)]
    key = r.choice(list(node))
    if r.random() < 0.2:
        return {k: v for k, v in node.items() if k != key}
    if r.random() < 0.2:
        return {**node, str(r.choice(words)): r.choice(words)}
    return {**node, key: mutated(r, node[key])}


def test_at_random(bare, monkeypatch):
    """Every text gives a value or BadValue; and no modules but these two are imported for it."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    r = random.Random(seed)
    samples = [encode(some_value(r)) for _ in range(150)]
    if not bare:
        np = pytest.importorskip("numpy")
        samples += [encode(np.arange(4.0)), encode(np.array([["a"]]))] * 20
        pd = pytest.importorskip("pandas")
        samples += [
            encode(pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": pd.Categorical(["u", "v"])})),
            encode(pd.Series([1.5, 2])),
        ] * 30
    for text in samples:
        decode(text)
        for _ in range(12):
            node = mutated(r, json.loads(text))
            for _ in range(r.randrange(3)):
                node = mutated(r, node)
            try:
                encode_again(decode(json.dumps(node)))
            except BadValue:
                pass
        cut = text[: r.randrange(len(text) + 1)]
        try:
            decode(cut)
        except BadValue:
            pass


def encode_again(value):
    """A decoded value is data: it can be encoded again, unless it is too large."""
    try:
        repr(value)
        encode(value)
    except NotReturnable:
        pass


def test_the_files_stand_alone():
    """Sandboxes load the text of these modules: every Python there must be able to run it, with nothing but each other."""
    package = type(sys)("alone")
    package.__path__ = []
    names = ["alone"]
    sys.modules["alone"] = package
    try:
        for name, text in _values.sources().items():
            module = type(sys)("alone." + name)
            module.__package__ = "alone"
            names.append(module.__name__)
            sys.modules[module.__name__] = module
            exec(compile(text, "<alone>", "exec"), module.__dict__)
            setattr(package, name, module)
        assert package._values.decode(package._encode.encode({1: [decimal.Decimal("1.5")]})) == {1: [decimal.Decimal("1.5")]}
    finally:
        for name in names:
            del sys.modules[name]
