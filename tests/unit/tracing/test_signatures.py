"""A decorated function is, for whoever looks at it or uses it, the function that was written."""

import abc
import asyncio
import copy
import dataclasses
import functools
import inspect
import pickle
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Annotated, Any, Protocol, runtime_checkable

import pytest
from fastapi import Depends, FastAPI
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s


def plain(a: int, /, b: "str" = "x", *rest: float, c: bool = True, **more: "Later") -> "Later | None":
    """What it does."""
    return None


plain.custom = 1  # type: ignore[attr-defined]


class Later: ...


@sg.trace
def at_module(question: str) -> str:
    return question.upper()


@sg.trace
async def at_module_async(question: str) -> str:
    return question.upper()


@sg.trace
def at_module_parts(question: str) -> Iterator[str]:
    yield question


def test_all_that_can_be_asked_of_a_function_is_answered_as_before(traced: Spans) -> None:
    wrapped: Any = sg.trace(plain)
    assert inspect.signature(wrapped) == inspect.signature(plain)
    assert inspect.signature(wrapped, eval_str=True) == inspect.signature(plain, eval_str=True)
    assert typing.get_type_hints(wrapped) == typing.get_type_hints(plain)
    assert wrapped.__wrapped__ is plain
    assert inspect.unwrap(wrapped) is plain
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "custom"):
        assert getattr(wrapped, name) == getattr(plain, name)
    assert inspect.getsource(wrapped) == inspect.getsource(plain)
    assert inspect.isfunction(wrapped)


@pytest.mark.parametrize("fn", [at_module, at_module_async, at_module_parts])
def test_it_is_pickled_by_its_name_and_copied_as_itself(fn: Any) -> None:
    assert pickle.loads(pickle.dumps(fn)) is fn
    assert copy.copy(fn) is copy.deepcopy(fn) is fn
    assert pickle.loads(pickle.dumps(functools.partial(fn, "q"))).func is fn


def test_another_process_runs_it(traced: Spans) -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(at_module, "q").result(60) == "Q"


@dataclasses.dataclass
class Shop:
    name: str = "shop"

    @sg.trace
    def method(self, q: str) -> str:
        return f"{self.name} {q}"

    @sg.trace
    @classmethod
    def class_above(cls, q: str) -> str:
        return f"{cls.__name__} {q}"

    @classmethod
    @sg.trace
    def class_below(cls, q: str) -> str:
        return f"{cls.__name__} {q}"

    @sg.trace
    @staticmethod
    def static_above(q: str) -> str:
        return q

    @staticmethod
    @sg.trace
    def static_below(q: str) -> str:
        return q

    @property
    @sg.trace
    def size(self) -> int:
        return len(self.name)

    @functools.cached_property
    @sg.trace
    def cached(self) -> int:
        return len(self.name)

    half = functools.partialmethod(method, "half")

    @sg.trace
    def __call__(self, q: str) -> str:
        return q

    @sg.trace
    def __enter__(self) -> "Shop":
        return self

    @sg.trace
    def __exit__(self, *_: object) -> None: ...


class Small(Shop):
    @sg.trace
    def method(self, q: str) -> str:
        return super().method(q) + "!"


METHODS: dict[str, Callable[[Shop], Any]] = {
    "shop q": lambda shop: shop.method("q"),
    "shop half": lambda shop: shop.half(),
    "Shop q": lambda shop: shop.class_above("q"),
    "Shop q ": lambda shop: Shop.class_below("q") + " ",
    "q": lambda shop: shop.static_above("q"),
    " q": lambda shop: " " + Shop.static_below("q"),
    "4": lambda shop: str(shop.size),
    " 4": lambda shop: " " + str(shop.cached),
    "c": lambda shop: shop("c"),
    "shop m": lambda shop: Shop.method(shop, "m"),
    "shop bound": lambda shop: sg.trace(shop.method)("bound"),
}


@pytest.mark.parametrize("result", METHODS)
def test_methods_of_every_kind_work_and_record_no_self(result: str, traced: Spans) -> None:
    assert METHODS[result](Shop()) == result
    for span in traced.all():
        assert "Shop" not in str(span.attributes.get(s.OI_INPUT))


def test_super_and_with_statements_work(traced: Spans) -> None:
    assert Small().method("q") == "shop q!"
    with Shop() as shop:
        assert shop == Shop()
    assert [span.name for span in traced.all()] == ["Shop.method", "Small.method", "Shop.__enter__", "Shop.__exit__"]


def test_abstract_methods_stay_abstract_and_protocols_are_met(traced: Spans) -> None:
    class Base(abc.ABC):
        @sg.trace
        @abc.abstractmethod
        def ask(self, q: str) -> str: ...

        @abc.abstractmethod
        @sg.trace
        def tell(self, q: str) -> str: ...

    @runtime_checkable
    class Asks(Protocol):
        def method(self, q: str) -> str: ...

    assert Base.__abstractmethods__ == {"ask", "tell"}
    with pytest.raises(TypeError, match="abstract"):
        Base()  # type: ignore[abstract]
    assert isinstance(Shop(), Asks)


def test_functions_that_choose_by_type_work_above_and_below(traced: Spans) -> None:
    @sg.trace
    @functools.singledispatch
    def above(value: Any) -> str:
        return "any"

    @above.register
    @sg.trace
    def _(value: int) -> str:
        return "int"

    @functools.singledispatch
    @sg.trace
    def below(value: Any) -> str:
        return "any"

    @below.register
    def _(value: int) -> str:
        return "int"

    assert [above(1), above("a"), below(1), below("a")] == ["int", "any", "int", "any"]
    assert above.registry.keys() == {object, int}


def test_a_cache_above_or_below_answers_for_itself(traced: Spans) -> None:
    @sg.trace
    @functools.lru_cache(maxsize=8)
    def above(n: int) -> int:
        return n

    @functools.lru_cache(maxsize=8)
    @sg.trace
    def below(n: int) -> int:
        return n

    assert [above(1), above(1), below(1), below(1)] == [1] * 4
    assert len(traced.all()) == 3
    for cached in (above, below):
        assert cached.cache_info().hits == 1
        assert cached.cache_parameters()["maxsize"] == 8
        cached.cache_clear()
        assert cached.cache_info().currsize == 0


def test_a_partial_shows_what_it_is_made_of(traced: Spans) -> None:
    half = sg.trace(functools.partial(plain, 1, c=False))
    assert (half.func, half.args, half.keywords) == (plain, (1,), {"c": False})
    assert inspect.signature(half) == inspect.signature(functools.partial(plain, 1, c=False))


def test_a_plain_function_that_returns_a_coroutine_or_a_future_gives_that(traced: Spans) -> None:
    @sg.trace
    def coroutine(q: str) -> Any:
        return at_module_async.__wrapped__(q)  # type: ignore[attr-defined]

    @sg.trace
    def future(q: str) -> Any:
        made = asyncio.get_running_loop().create_future()
        made.set_result(q)
        return made

    async def main() -> list[str]:
        made = coroutine("q")
        assert inspect.iscoroutine(made)
        assert isinstance(future("f"), asyncio.Future)
        return [await made, await future("q")]

    assert not inspect.iscoroutinefunction(coroutine)
    assert asyncio.run(main()) == ["Q", "q"]


@pytest.mark.parametrize("wrong", [property(lambda self: 1), functools.partialmethod(plain, 1), 7, Shop])
def test_what_cannot_be_called_is_refused_in_words(wrong: Any) -> None:
    with pytest.raises(sg.ConfigError, match="trace: "):
        sg.trace(wrong)


# --- FastAPI ----------------------------------------------------------------------------------------------------------------

CLOSED: list[str] = []


def application(trace: Callable[..., Any]) -> FastAPI:
    """The same application with and without us."""

    @trace
    def settings(q: str = "none") -> dict[str, str]:
        return {"q": q}

    @trace
    async def user(x_user: str = "nobody") -> str:
        return x_user

    @trace
    def session() -> Iterator[str]:
        yield "session"
        CLOSED.append("session")

    @trace
    async def client() -> AsyncIterator[str]:
        yield "client"
        CLOSED.append("client")

    class Paging:
        @trace
        def __call__(self, page: int = 1) -> int:
            return page

    app = FastAPI()
    everything = Annotated[dict[str, str], Depends(settings)]

    @app.get("/sync/{n}")
    @trace
    def sync(
        n: int,
        found: everything,
        who: str = Depends(user),
        held: str = Depends(session),
        ours: str = Depends(client),
        page: int = Depends(Paging()),
    ) -> dict[str, Any]:
        return {"n": n, **found, "who": who, "held": held, "ours": ours, "page": page}

    @app.post("/async")
    @trace
    async def handler(body: dict[str, int], found: everything) -> dict[str, Any]:
        return {**body, **found}

    @app.get("/stream")
    @trace
    async def stream() -> StreamingResponse:
        @trace
        async def chunks() -> AsyncIterator[str]:
            for part in ("a", "b"):
                yield part

        return StreamingResponse(chunks())

    return app


def use(app: FastAPI) -> list[Any]:
    CLOSED.clear()
    client = TestClient(app)
    answers = [
        client.get("/sync/7?q=a&x_user=me&page=2"),
        client.get("/sync/seven"),
        client.post("/async?q=b", json={"x": 1}),
        client.post("/async", json=["not a dict"]),
        client.get("/stream"),
    ]
    return [app.openapi(), sorted(CLOSED), *((answer.status_code, answer.text) for answer in answers)]


def test_an_application_in_fastapi_is_the_same_with_us(traced: Spans) -> None:
    bare = use(application(lambda fn: fn))
    ours = use(application(sg.trace))
    assert ours == bare
    assert bare[2] == (200, '{"n":7,"q":"a","who":"me","held":"session","ours":"client","page":2}')
    names = [span.name.rpartition(".")[2] for span in traced.all()]
    assert {"settings", "user", "session", "client", "__call__", "sync", "handler", "stream", "chunks"} <= set(names)
    assert Spans.open() == 0
