"""Which arguments of a call are recorded, and how a function says so."""

import asyncio
import cProfile
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s


def given(span: Any) -> Any:
    """The recorded input; None where there is none."""
    text = span.attributes.get(s.OI_INPUT)
    return json.loads(text) if span.attributes.get(s.OI_INPUT_MIME) == s.MIME_JSON else text


def ask(question: str, client: Any = None, *rest: Any, top: int = 3, **more: Any) -> str:
    return question


CHOICES: list[tuple[dict[str, Any], Callable[..., Any], Any]] = [
    ({}, lambda f: f("q", 1), {"question": "q", "client": 1}),
    ({"capture_input": True}, lambda f: f("q"), {"question": "q"}),
    ({"capture_input": False}, lambda f: f("q", 1, 2, top=4, z=5), None),
    ({"capture_input": []}, lambda f: f("q", 1), None),
    ({"capture_input": ["question"]}, lambda f: f("q", 1, 2, top=4, z=5), "q"),
    ({"capture_input": ["question"]}, lambda f: f(question="q", client=1), "q"),
    ({"capture_input": ("question", "top")}, lambda f: f("q", 1), {"question": "q"}),
    ({"capture_input": ("question", "top")}, lambda f: f("q", 1, top=4), {"question": "q", "top": 4}),
    ({"capture_input": ["rest"]}, lambda f: f("q", 1, 2, 3), {"rest": [2, 3]}),
    ({"capture_input": ["more"]}, lambda f: f("q", 1, z=5, y=6), {"z": 5, "y": 6}),
    ({"capture_input": ["z"]}, lambda f: f("q", 1, z=5, y=6), 5),
    ({"capture_input": ["top"]}, lambda f: f("q"), None),
    (
        {"ignore_inputs": ["client"]},
        lambda f: f("q", 1, 2, top=4, z=5),
        {"question": "q", "rest": [2], "top": 4, "z": 5},
    ),
    ({"ignore_inputs": ["client", "rest", "top", "more"]}, lambda f: f("q", 1, 2, top=4, z=5), "q"),
    ({"ignore_inputs": ["more"]}, lambda f: f("q", z=5), {"question": "q"}),
    ({"ignore_inputs": ["z"]}, lambda f: f("q", z=5, y=6), {"question": "q", "y": 6}),
    ({"ignore_inputs": {"client"}}, lambda f: f("q", 1), {"question": "q"}),
]


@pytest.mark.parametrize(("chosen", "use", "recorded"), CHOICES)
def test_only_what_is_chosen_is_recorded(chosen: Any, use: Any, recorded: Any, traced: Spans) -> None:
    use(sg.trace(**chosen)(ask))
    assert given(traced.only()) == recorded


def two(question: str, client: Any) -> None: ...


def test_what_is_left_alone_is_the_input_itself(traced: Spans) -> None:
    sg.trace(ignore_inputs=["client"])(two)("what?", object())
    assert traced.attributes()[s.OI_INPUT] == "what?"
    assert traced.attributes()[s.OI_INPUT_MIME] == s.MIME_TEXT


class Shop:
    @sg.trace(ignore_inputs=["client", "self"])
    def method(self, question: str, client: Any) -> str:
        return question

    @classmethod
    @sg.trace(capture_input=["question"])
    def of_class(cls, question: str, client: Any) -> str:
        return question

    @sg.trace(ignore_inputs=["client"])
    @staticmethod
    def static(question: str, client: Any) -> str:
        return question

    @sg.trace(capture_input=["question"])
    def parts(self, question: str, client: Any) -> Iterator[str]:
        yield from question

    @sg.trace(capture_input=["question"])
    async def later(self, question: str, client: Any) -> str:
        return question

    @sg.trace(capture_input=["question"])
    async def streamed(self, question: str, client: Any) -> AsyncIterator[str]:
        for part in question:
            yield part


async def _all(stream: AsyncIterator[str]) -> list[str]:
    return [part async for part in stream]


KINDS: dict[str, Callable[[Any], Any]] = {
    "method": lambda client: Shop().method("q", client),
    "class method": lambda client: Shop.of_class("q", client),
    "static method": lambda client: Shop.static("q", client),
    "generator": lambda client: list(Shop().parts("q", client)),
    "coroutine": lambda client: asyncio.run(Shop().later("q", client)),
    "async generator": lambda client: asyncio.run(_all(Shop().streamed("q", client))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_holds_for_every_kind_of_function(kind: str, traced: Spans) -> None:
    KINDS[kind]("the client")
    found = traced.attributes()
    assert found[s.OI_INPUT] == "q"
    assert found[s.OI_OUTPUT] == "q"
    assert "the client" not in str(found)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"capture_input": ["qestion"]}, r"two has no parameter 'qestion'; its parameters: question, client"),
        ({"ignore_inputs": ["question", "x"]}, r"no parameter 'x'; its parameters: question, client"),
        ({"capture_input": ["self"]}, r"no parameter 'self'"),
        ({"capture_input": "question"}, r"capture_input 'question' is not a list of parameter names"),
        ({"ignore_inputs": "client"}, r"ignore_inputs 'client' is not a list of parameter names"),
        ({"ignore_inputs": [1]}, r"is not a list of parameter names"),
        ({"capture_input": None}, r"is not a list of parameter names"),
        ({"capture_input": ["question"], "ignore_inputs": ["client"]}, r"not both"),
        ({"capture_input": False, "ignore_inputs": ["client"]}, r"not both"),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused_when_the_function_is_decorated(said: Any, sentence: str) -> None:
    with pytest.raises(sg.ConfigError, match=sentence):
        sg.trace(**said)(two)


def test_a_function_without_parameters_is_said_to_have_none() -> None:
    with pytest.raises(sg.ConfigError, match="its parameters: none"):
        sg.trace(ignore_inputs=["x"])(lambda: None)


def test_a_function_that_cannot_be_asked_for_its_parameters_takes_any_name(traced: Spans) -> None:
    class Unknown:
        __signature__ = "none"

        def __call__(self, *args: Any, **kwargs: Any) -> None: ...

    sg.trace(ignore_inputs=["client"])(Unknown())(1, client="the client", z=2)
    assert given(traced.only()) == {"args": [1], "z": 2}


def _answer() -> str:
    return "the answer"


def _found() -> list[str]:
    return ["the answer"]


def _gives() -> Iterator[str]:
    yield "the answer"
    return "the answer"


def _returns() -> Iterator[str]:
    return _gives()


async def _answers() -> str:
    return "the answer"


async def _streams() -> AsyncIterator[str]:
    yield "the answer"


def _once(value: Any) -> Any:
    return value


OUTPUTS: list[tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("chain", _answer, _once),
    ("llm", _answer, _once),
    ("retriever", _found, _once),
    ("chain", _gives, list),
    ("chain", _returns, list),
    ("retriever", _gives, list),
    ("chain", _answers, asyncio.run),
    ("chain", _streams, lambda stream: asyncio.run(_all(stream))),
]


@pytest.mark.parametrize(("kind", "fn", "use"), OUTPUTS)
def test_no_output_is_recorded_where_none_is_wanted(kind: Any, fn: Any, use: Any, traced: Spans) -> None:
    assert "the answer" in use(sg.trace(kind=kind, capture_output=False)(fn)())
    found = traced.attributes()
    assert "the answer" not in str(found)
    assert not {s.OI_OUTPUT, s.OUTPUT_MESSAGES, s.RETRIEVAL_DOCUMENTS} & set(found)


def test_what_is_said_by_hand_is_recorded_in_any_case(traced: Spans) -> None:
    @sg.trace(capture_input=False, capture_output=False)
    def f(question: str) -> str:
        sg.set_input("said in")
        sg.set_output("said out")
        sg.set_retrieval_documents(["said found"])
        return "returned"

    f("given")
    found = traced.attributes()
    assert found[s.OI_INPUT] == "said in"
    assert found[s.OI_OUTPUT] == "said out"
    assert "said found" in found[s.RETRIEVAL_DOCUMENTS]


def test_a_function_that_says_nothing_pays_nothing(traced: Spans) -> None:
    def calls(fn: Callable[..., Any]) -> int:
        profile = cProfile.Profile()
        profile.enable()
        fn("q")
        profile.disable()
        return sum(entry.callcount for entry in profile.getstats())

    def f(question: str) -> None: ...

    plain = sg.trace(f)
    chosen = sg.trace(capture_input=True, capture_output=True)(f)
    plain("q"), chosen("q")
    assert min(calls(chosen) for _ in range(5)) == min(calls(plain) for _ in range(5))


# --- secrets ----------------------------------------------------------------------------------------------------------------


def test_an_argument_with_a_secrets_name_is_not_recorded(traced: Spans) -> None:
    def login(user: str, password: str, *, api_key: str = "") -> None: ...

    sg.trace(login)("me", "hunter2", api_key="sk-123")
    assert given(traced.only()) == {"user": "me", "password": "[secret]", "api_key": "[secret]"}


@pytest.mark.parametrize("way", ["by place", "by name"])
def test_the_only_argument_may_be_a_secret(way: str, traced: Spans) -> None:
    @sg.trace
    def login(client_secret: str) -> None: ...

    login("hunter2") if way == "by place" else login(client_secret="hunter2")
    assert given(traced.only()) == "[secret]"


def test_the_only_chosen_argument_may_be_a_secret(traced: Spans) -> None:
    sg.trace(capture_input=["password"])(lambda user, password: None)("me", "hunter2")
    assert given(traced.only()) == "[secret]"


def test_a_token_is_a_secret_where_it_looks_like_one(traced: Spans) -> None:
    @sg.trace
    def f(token: str) -> None: ...

    f("word")
    f("x" * 40)
    assert [given(span) for span in traced.all()] == ["word", "[secret]"]
