"""`_values`: any value becomes bounded, valid text, and nothing of the application's is run for it."""

import base64
import cProfile
import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import math
import pathlib
import random
import tracemalloc
import types
import uuid
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable, Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, computed_field

from spangrade._values import (
    MAX_BYTES,
    MAX_CHARS,
    MAX_DEPTH,
    MAX_NODES,
    Walk,
    bounded,
    captured,
    cut,
    dumps,
    fit,
    settled,
    snapshot,
    to_text,
    type_name,
    valid,
)

# --- text -------------------------------------------------------------------------------------------------------------------


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    assert valid("plain") == "plain"
    assert valid("é漢😀") == "é漢😀"
    assert valid("a\ud83db") == "a\ufffdb"
    assert valid("\ud83d\ude00") == "😀"
    assert valid("\ude00\ud83d") == "\ufffd\ufffd"
    assert valid("\ud800" * 50_000).encode()


def test_a_cut_text_keeps_both_ends_and_says_how_much_is_missing() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefghij", 4) == "ab…[6 characters cut]…ij"
    assert len(bounded("x" * 2 * MAX_CHARS)) < MAX_CHARS + 50


@given(st.text(st.characters(exclude_categories=()), max_size=400), st.integers(2, 300))
def test_a_fitted_text_is_valid_and_no_longer_than_its_bytes(text: str, limit: int) -> None:
    fitted = fit(text, limit)
    mark = len("…[400 characters cut]…".encode())
    assert len(fitted.encode()) <= limit + mark
    if len(text.encode("utf-8", "replace")) <= limit // 3:
        assert fitted == valid(text)


def test_a_character_is_never_cut_in_two() -> None:
    assert fit("漢" * 100, 20) == "漢漢漢…[94 characters cut]…漢漢漢"


# --- every kind of value ----------------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    NUMBER = 3
    PAIR = (1, 2)


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.StrEnum):
    ON = "on"


class Flags(enum.Flag):
    A = 1
    B = 2


class Word(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __len__ = __getitem__ = __eq__ = __str__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Number(int):
    def __int__(self) -> int:
        raise RuntimeError

    __repr__ = __str__ = __int__  # type: ignore[assignment]


class Real(float):
    def __float__(self) -> float:
        raise RuntimeError


class Items(list[int]):
    def __iter__(self) -> Iterator[int]:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


class Pairs(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError

    keys = values = __iter__ = __len__ = items


class Raw(bytes):
    def __len__(self) -> int:
        raise RuntimeError

    __getitem__ = __bytes__ = __buffer__ = __len__  # type: ignore[assignment]


@dataclasses.dataclass
class Plain:
    a: int = 1
    _private: int = 2

    @property
    def computed(self) -> int:
        raise RuntimeError


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int = 1
    b: str = "x"


class Base(BaseModel):
    a: int = 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def computed(self) -> int:
        raise RuntimeError

    def model_dump(self, **_: Any) -> Any:  # type: ignore[override]
        raise RuntimeError


class Attrs:
    """As attrs makes them."""

    __attrs_attrs__ = ()
    __slots__ = ("a", "unset")

    def __init__(self) -> None:
        self.a = 1


Point = namedtuple("Point", "x y")
ABC = f"<bytes length=3 sha256={hashlib.sha256(b'abc').hexdigest()[:16]}>"

KINDS: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (7, 7),
    (2**63, str(2**63)),
    (-(2**63), -(2**63)),
    (-(2**63) - 1, str(-(2**63) - 1)),
    (10**5_000, "<int of 16610 bits>"),
    (1.5, 1.5),
    (math.inf, "inf"),
    (-math.inf, "-inf"),
    (math.nan, "nan"),
    ("text", "text"),
    ("\ud800", "\ufffd"),
    (Colour.RED, "red"),
    (Colour.NUMBER, 3),
    (Colour.PAIR, "Colour.PAIR"),
    (Level.LOW, 1),
    (Mode.ON, "on"),
    (Flags.A, 1),
    (Number(5), 5),
    (Real(2.5), 2.5),
    (Real("nan"), "nan"),
    (b"abc", ABC),
    (bytearray(b"abc"), ABC),
    (memoryview(b"abc"), ABC),
    (Raw(b"abc"), ABC),
    ([1, [2]], [1, [2]]),
    ((1, 2), [1, 2]),
    ({1}, [1]),
    (frozenset({1}), [1]),
    (Point(1, 2), [1, 2]),
    (Items([1, 2]), [1, 2]),
    (Pairs(a=1), {"a": 1}),
    (OrderedDict(a=1), {"a": 1}),
    (
        {1: "a", None: "b", 2.5: "c", (1, 2): "d", b"abc": "e"},
        {"1": "a", "null": "b", "2.5": "c", "[1,2]": "d", ABC: "e"},
    ),
    ({True: 1, False: 2}, {"true": 1, "false": 2}),
    (datetime.date(2024, 1, 2), "2024-01-02"),
    (datetime.datetime(2024, 1, 2, 3, tzinfo=datetime.UTC), "2024-01-02 03:00:00+00:00"),
    (datetime.time(1, 2), "01:02:00"),
    (datetime.timedelta(seconds=5), "0:00:05"),
    (datetime.UTC, "UTC"),
    (ZoneInfo("UTC"), "UTC"),
    (decimal.Decimal("1.50"), "1.50"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (pathlib.PurePosixPath("a/b"), "a/b"),
    (complex(1, 2), "(1+2j)"),
    (Plain(), {"a": 1}),
    (Slotted(), {"a": 1, "b": "x"}),
    (Base(), {"a": 1}),
    (Attrs(), {"a": 1}),
    (object(), "<builtins.object>"),
    (deque([1]), "<collections.deque>"),
    (iter([1]), "<builtins.list_iterator>"),
    (types.SimpleNamespace(a=1), "<types.SimpleNamespace>"),
    (len, "<builtins.builtin_function_or_method>"),
    (int, "<builtins.type>"),
]


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_every_kind_of_value_has_its_plain_form(number: int) -> None:
    value, expected = KINDS[number]
    assert snapshot(value) == expected
    assert captured(value) == expected
    text, is_json = to_text([value])
    assert is_json
    assert json.loads(text) == [expected]


def test_a_subclass_of_str_that_fights_back_is_its_text() -> None:
    assert snapshot(Word("abc")) == "abc"
    assert to_text(Word("abc")) == ("abc", False)
    long = to_text(Word("é" * 3_000_000))[0]
    assert len(long.encode()) < MAX_BYTES * 1.01


def numpy_values() -> list[tuple[Any, Any]]:
    np = pytest.importorskip("numpy", reason="numpy is in the dev extra: make test installs it")
    record = np.array((1, 2.5), dtype=[("a", int), ("b", float)])
    return [
        (np.float32(1.5), 1.5),
        (np.float64("nan"), "nan"),
        (np.int64(7), 7),
        (np.uint64(2**64 - 1), str(2**64 - 1)),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
        (np.bytes_(b"abc"), ABC),
        (np.complex64(1 + 2j), "(1+2j)"),
        (np.longdouble(1), "<numpy.longdouble>"),
        (np.datetime64("2024-01-02"), "2024-01-02"),
        (np.timedelta64(5, "s"), "0:00:05"),
        (record[()], [1, 2.5]),
        ({np.int64(1): np.str_("a")}, {"1": "a"}),
        ([np.float32(0.5)] * 2, [0.5, 0.5]),
        (np.zeros((2, 3)), "<numpy.ndarray shape=(2, 3) dtype=float64>"),
        (np.zeros(10_000_000, dtype="i1"), "<numpy.ndarray shape=(10000000,) dtype=int8>"),
        (np.array(5), f"<numpy.ndarray shape=() dtype={np.array(5).dtype}>"),
        (np.full(1, None, dtype=object), "<numpy.ndarray shape=(1,) dtype=object>"),
        (np.ma.masked, f"<{type(np.ma.masked).__module__}.MaskedConstant shape=() dtype=float64>"),
        (np.random.default_rng(1), "<numpy.random._generator.Generator>"),
        (np.float32, "<builtins.type>"),
    ]


def test_numpy_scalars_are_read_and_arrays_are_named() -> None:
    for value, expected in numpy_values():
        assert captured(value) == expected
        assert snapshot(value) == expected
        assert json.loads(to_text([value])[0]) == [expected]


def test_a_class_of_the_applications_with_numpys_name_is_asked_for_nothing() -> None:
    class Claims:
        __module__ = "numpy"

        @property
        def item(self) -> Any:
            raise SystemError

        shape = dtype = item

    assert snapshot(Claims()).startswith("<numpy.")


def test_text_is_itself_and_everything_else_is_json() -> None:
    assert to_text("a") == ("a", False)
    assert to_text('{"a": 1}') == ('{"a": 1}', False)
    assert to_text({"a": [1, 1.5, None, True, "é"]}) == ('{"a":[1,1.5,null,true,"é"]}', True)
    assert to_text(None) == ("null", True)
    assert to_text(object()) == ("<builtins.object>", False)


def test_the_quick_way_and_the_long_way_give_the_same() -> None:
    value = {"a": [1, 2.5, "x", None, True, {"b": (1, 2)}], "é": {}}
    assert to_text(value)[0] == dumps(captured(value))
    assert json.loads(to_text([2**70, "a"])[0]) == [str(2**70), "a"]
    assert json.loads(to_text([math.nan, "a"])[0]) == ["nan", "a"]
    assert json.loads(to_text(["\ud800"])[0]) == ["\ufffd"]


def test_the_copy_is_fresh() -> None:
    value = {"a": [1]}
    copy = snapshot(value)
    value["a"].append(2)
    assert copy == {"a": [1]}


# --- what fights back -------------------------------------------------------------------------------------------------------


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise SystemError(name)

    def __hash__(cls) -> int:
        raise SystemError

    def __eq__(cls, other: object) -> bool:
        raise SystemError

    def __instancecheck__(cls, instance: object) -> bool:
        raise SystemError

    def __subclasscheck__(cls, subclass: type) -> bool:
        raise SystemError


class Fights:
    def __getattribute__(self, name: str) -> Any:
        raise SystemError(name)

    __iter__ = __len__ = __bool__ = __str__ = __repr__ = __hash__ = __eq__ = __float__ = __int__ = None  # type: ignore[assignment]


def hostile() -> list[Any]:
    """Made anew for each test: pytest must not look at them."""
    named = type("Named", (), {"__module__": Fights(), "__qualname__": "\ud800"})
    released = memoryview(b"abc")
    released.release()
    return [Fights(), type.__call__(Meta("Hostile", (), {})), named(), released, Meta("AClass", (), {})]


def test_no_object_is_asked_for_anything() -> None:
    for value in hostile():
        for text, _ in (to_text(value), to_text({"deep": [value]}), to_text({Fights: 1})):
            text.encode()
            assert "<" in text
        assert isinstance(snapshot(value), str)


def test_a_type_is_named_without_asking_it() -> None:
    assert type_name(1) == "builtins.int"
    assert type_name(Plain()).endswith("test_values.Plain")
    names = [type_name(value) for value in hostile()]
    assert names[2] == "?.\ufffd"
    assert all(name.encode() for name in names)


def test_a_container_that_changes_while_it_is_read_is_read_or_named() -> None:
    class Grows(datetime.tzinfo):
        def utcoffset(self, _: Any) -> datetime.timedelta:
            value["more"] = 1
            return datetime.timedelta()

    value: dict[str, Any] = {"when": datetime.datetime(2024, 1, 2, tzinfo=Grows()), "b": 2}
    assert snapshot(value)["b"] == 2


# --- bounds -----------------------------------------------------------------------------------------------------------------


def test_cycles_end() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    mapping: dict[str, Any] = {}
    mapping["self"] = mapping
    thing = Plain()
    thing.a = thing  # type: ignore[assignment]
    assert snapshot(ring) == [1, "<cycle>"]
    assert to_text(mapping) == ('{"self":"<cycle>"}', True)
    assert snapshot(thing) == {"a": "<cycle>"}
    assert snapshot([[1]] * 2) == [[1], [1]]  # twice is no cycle


def test_depth_ends() -> None:
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = [deep]
    assert f"deeper than {MAX_DEPTH} levels" in dumps(snapshot(deep))
    assert f"deeper than {MAX_DEPTH} levels" in to_text(deep)[0]


@pytest.mark.parametrize("value", [[1] * 1_000_000, dict.fromkeys(range(1_000_000)), set(range(1_000_000))])
def test_items_end_and_the_end_is_said(value: Any) -> None:
    copy = snapshot(value)
    assert len(copy) <= MAX_NODES + 1
    if isinstance(copy, dict):
        assert copy["…"] == "<more items cut>"
    else:
        assert copy[-1] == "<more items cut>"


BIG: dict[str, Callable[[int], Any]] = {
    "list": lambda n: [1.5] * n,
    "dict": lambda n: dict.fromkeys(range(n)),
    "names": lambda n: dict.fromkeys(map(str, range(n))),
    "nested": lambda n: [[i, i] for i in range(n)],
    "text": lambda n: "é" * (n * 12),
    "texts": lambda n: ["x" * 1_000] * n,
    "bytes": lambda n: bytes(n * 100),
    "bytearray": lambda n: bytearray(n * 100),
    "media": lambda n: "data:image/png;base64," + "iVBORw0K" * n * 4,
    "run": lambda n: "iVBORw0K" * n * 4,
    "surrogates": lambda n: "\ud800" * (n * 12),
    "word": lambda n: Word("x" * n * 20),
    "digits": lambda n: 1 << n * 20,
    "objects": lambda n: [Plain()] * n,
    "decimal": lambda n: decimal.Decimal("1" * n),
}


@pytest.mark.parametrize("name", BIG)
def test_the_work_does_not_grow_with_the_value(name: str) -> None:
    def cost(n: int) -> tuple[int, int]:
        value = BIG[name](n)
        tracemalloc.start()
        to_text(value)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return min(calls_for(value) for _ in range(2)), memory

    def calls_for(value: Any) -> int:
        # The least of some counts: a garbage collection calls hooks, and from Python 3.12 on other threads are seen too.
        profile = cProfile.Profile()
        profile.runcall(to_text, value)
        return sum(entry.callcount for entry in profile.getstats())

    calls, memory = cost(100_000)
    more_calls, more_memory = cost(200_000)
    assert calls < 250_000
    assert more_calls <= calls * 1.05 + 10
    assert memory < 12_000_000
    assert more_memory <= memory * 1.05 + 100_000


def test_values_that_share_a_walk_share_its_bounds() -> None:
    walk = Walk(1_000, captured=True)
    copies = [walk.items(("x" * 300,), 1, 1) for _ in range(10)]
    assert walk.spent
    assert copies[0] == ["x" * 300]
    assert copies[-1] == ["<more items cut>"]


# --- media ------------------------------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n" + random.Random(7).randbytes(50_002)
B64 = base64.b64encode(PNG).decode()
NAME = f"length={len(PNG)} sha256 of the first 16384={hashlib.sha256(PNG[:16_384]).hexdigest()[:16]}>"


@pytest.mark.parametrize(
    "value",
    [PNG, bytearray(PNG), memoryview(PNG), B64, f"data:image/png;base64,{B64}", base64.urlsafe_b64encode(PNG).decode()],
    ids=["bytes", "bytearray", "memoryview", "base64", "data URL", "base64 for URLs"],
)
def test_one_image_has_one_name_in_every_form(value: Any) -> None:
    assert to_text(value)[0] == f"<media image/png {NAME}"
    assert json.loads(to_text({"image": value})[0]) == {"image": f"<media image/png {NAME}"}


def test_media_inside_of_a_text_are_named_and_the_text_stays() -> None:
    url = f"data:image/png;base64,{B64}"
    named = f"<media image/png {NAME}"
    assert to_text(f"before ![cat]({url}) between {url} after")[0] == f"before ![cat]({named}) between {named} after"
    assert to_text(f'{{"b64_json": "{B64}", "n": 1}}')[0] == f'{{"b64_json": "{named}", "n": 1}}'
    assert to_text(f"{B64} and {B64}")[0] == f"{named} and {named}"


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "media image/jpeg"),
        (b"GIF89a", "media image/gif"),
        (b"%PDF-1.7", "media application/pdf"),
        (b"RIFF\x00\x00\x00\x00WEBP", "media image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVE", "media audio/wav"),
        (b"RIFF\x00\x00\x00\x00????", "bytes"),
        (b"\x00\x00\x00\x18ftypmp42", "media video/mp4"),
        (b"OggS", "media audio/ogg"),
        (b"\x00\x01\x02", "bytes"),
    ],
)
def test_media_are_known_by_how_they_begin(start: bytes, kind: str) -> None:
    data = start + random.Random(3).randbytes(6_000)
    assert to_text(data)[0].startswith(f"<{kind} length={len(data)} ")
    encoded = to_text(base64.b64encode(data).decode())[0]
    assert encoded.startswith(f"<{'base64' if kind == 'bytes' else kind} length={len(data)} ")


def test_a_declared_type_counts_and_a_missing_one_is_text() -> None:
    payload = base64.b64encode(bytes(range(256)) * 4).decode()
    assert to_text(f"data:audio/x-foo;rate=8000;base64,{payload}")[0].startswith("<media audio/x-foo length=1024 ")
    assert to_text(f"data:;base64,{payload}")[0].startswith("<media text/plain length=1024 ")


@pytest.mark.parametrize(
    "text",
    [
        "data:image/gif;base64,R0lGODlhAQABAAAAACw=",  # shorter than its name
        "see ;base64, and data: for what a URL looks like " * 100,
        "x" * 10_000,
        "-" * 10_000,
        "ACGT" * 5_000,
        "0123456789abcdef" * 1_000,
        "snake_case_word/" * 1_000,
        "Refunds take 5 working days. " * 1_000,
        "漢字かな" * 5_000,
        ("aB3" * 600 + " ") * 20,
    ],
)
def test_what_is_no_media_stays(text: str) -> None:
    assert to_text(text) == (text, False)
    assert to_text([text])[0] == json.dumps([text], ensure_ascii=False, separators=(",", ":"))


def test_media_larger_than_what_is_looked_at_are_named_by_their_ends() -> None:
    huge = B64 * 60
    assert to_text(f"data:video/mp4;base64,{huge}")[0].startswith(
        f"<media video/mp4 length={len(huge) * 3 // 4} sha256"
    )
    assert to_text(huge)[0].startswith("<media image/png length=")
    text = to_text(f"before {huge} after")[0]
    assert text.startswith("before <media image/png")
    assert text.endswith(" after")
    assert len(text) < 1_000
    prose = f"data:image/png;base64,{B64} " + "and then some prose. " * 100_000
    assert to_text(prose)[0].startswith("<media image/png")
    assert "some prose" in to_text(prose)[0]


def test_of_very_many_images_the_last_are_told_by_length_alone() -> None:
    value = [f"data:image/png;base64,{B64}"] * 3_000
    names = json.loads(to_text(value)[0])
    assert names[0] == f"<media image/png {NAME}"
    assert names[-2] == f"<text length={len(value[0])}>"
    assert names[-1] == "<more items cut>"


def test_what_is_read_keeps_its_media() -> None:
    assert snapshot({"image": B64}) == {"image": B64}


# --- any value at all -------------------------------------------------------------------------------------------------------

anything = st.text(st.characters(exclude_categories=()), max_size=60)
leaves: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    anything,
    st.binary(max_size=60),
    st.builds(bytearray, st.binary(max_size=20)),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.decimals(),
    st.uuids(),
    st.complex_numbers(),
    st.sampled_from([*Colour, *Level, *Mode, Flags.A | Flags.B, Attrs(), Slotted(), Items([1]), Raw(b"x"), len, int]),
    st.builds(Plain, st.integers()),
    st.just("data:image/png;base64," + "iVBORw0K" * 100),
    st.just('"\\\x00\n' * 100),
    st.just("\ud800x" * 200),
    st.just("漢" * 300),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=8),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(anything, st.integers(), st.none(), st.floats(), st.booleans()), inner, max_size=8),
        st.builds(OrderedDict, st.dictionaries(anything, inner, max_size=4)),
        st.builds(Slotted, inner, anything),
        st.builds(lambda item: [item] * 30, inner),
    ),
    max_leaves=10,
)


def refuse(constant: str) -> Any:
    raise AssertionError(constant)


def is_plain(value: Any) -> bool:
    if type(value) is list:
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(type(key) is str and is_plain(item) for key, item in value.items())
    if type(value) is int:
        return -(2**63) <= value < 2**63
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is str:
        return valid(value) == value
    return value is None or type(value) is bool


@settings(max_examples=300, deadline=None)
@given(values, st.sampled_from([300, 3_000, MAX_BYTES]))
def test_any_value_becomes_valid_text_and_strict_json_within_its_bound(value: Any, limit: int) -> None:
    text, is_json = to_text(value, limit)
    # Beside the bound: marks of what was cut, at each level, and the rest that each text may have.
    assert len(text.encode()) <= limit * 17 // 16 + 1_500
    if is_json:
        json.loads(text, parse_constant=refuse)
    for copy in (snapshot(value), captured(value, limit)):
        assert is_plain(copy)


@settings(max_examples=200, deadline=None)
@given(values)
def test_what_is_plain_already_is_copied_as_it_is(value: Any) -> None:
    once = snapshot(value)
    assume("more items cut" not in dumps(once))
    assert snapshot(once) == once


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("aB3/+ =;,:"), max_size=200), st.integers(0, 60))
def test_naming_media_never_loses_the_words_around_them(text: str, times: int) -> None:
    url = f"data:image/png;base64,{B64[: 256 + times * 4]}"
    named = to_text(f"before {text} {url}\nafter")[0]
    assert named.startswith("before ")
    assert named.endswith("\nafter")
    assert "<media image/png length=" in named


read_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(read_json, st.integers(0, 20))
def test_what_nobody_else_holds_is_settled_as_its_snapshot_would_be(value: Any, deeper: int) -> None:
    for _ in range(deeper):
        value = [value]
    expected = snapshot(value)
    assert settled(value) == expected
    if expected == value:
        json.dumps(expected, allow_nan=False).encode()


def test_settled_json_within_the_bounds_is_not_copied_and_beyond_them_is_cut() -> None:
    fine = {"a": [1, 2.5, None, True, {"b": "ü"}]}
    assert settled(fine) is fine
    assert settled(many := [0] * 30_000) == snapshot(many) != many
    assert settled(long := ["x" * 600_000, "y" * 600_000]) == snapshot(long) != long


class Open(BaseModel, extra="allow"):
    declared: int = 1


def test_what_a_model_holds_beyond_its_fields_is_kept_too() -> None:
    assert snapshot(Open(more="x")) == {"declared": 1, "more": "x"}  # type: ignore[call-arg]
    assert snapshot(Open.model_construct(more="x")) == {"declared": 1, "more": "x"}
    assert snapshot(Open.__new__(Open)) == {}
