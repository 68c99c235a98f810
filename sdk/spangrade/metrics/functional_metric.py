"""`FunctionalMetric`: a function whose inputs and results are declared, scored by hand, in batches, or live."""

import asyncio
import functools
import inspect
import pickle
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from pydantic import BaseModel

from spangrade.errors import ConfigError
from spangrade.metrics import functional_loop
from spangrade.metrics.binding import is_async, name_of
from spangrade.metrics.functional_batch import (
    DEFAULT_CONCURRENCY,
    Progress,
    awaited_threads,
    check_concurrency,
    in_tasks,
    on_threads,
)
from spangrade.metrics.functional_call import NOT_AWAITABLE, Call
from spangrade.metrics.functional_inputs import Arguments, Inputs
from spangrade.metrics.functional_live import Filling, Grading, can_pass
from spangrade.metrics.functional_options import LiveOptions
from spangrade.metrics.functional_values import AllowedValues, Kind, shown
from spangrade.metrics.importable import at, place_of
from spangrade.metrics.source import source_hash
from spangrade.model.evaluator import EvaluatorInfo, Verdict, check_name, hash_config
from spangrade.model.result import MetricResult
from spangrade.model.sample import Sample
from spangrade.model.score import Skip

P = ParamSpec("P")
R = TypeVar("R")


class FunctionalMetric(Generic[P, R]):
    """Made by `discrete_metric`, `numeric_metric` and `ranking_metric`.

    Calling it calls the function, unchanged. It is an `Evaluator` too: the same object is given to ``configure(metrics=[...])``.

    Attributes:
        name: the score's name.
        fn: the function.
        kind: ``discrete``, ``numeric`` or ``ranking``.
        is_async: whether the function is a coroutine function.
    """

    __wrapped__: Callable[P, R]

    def __init__(
        self,
        fn: Callable[P, R],
        name: str | None,
        kind: Kind,
        allowed: AllowedValues,
        live: LiveOptions,
        scope: Mapping[str, Any],
    ) -> None:
        if not callable(fn) or isinstance(fn, type):
            raise ConfigError(f"{kind}_metric: {fn!r} is not a function; decorate a function of the inputs")
        self.fn = fn
        self.name = check_name(name or name_of(fn), "metric")
        self.kind: Kind = kind
        what = f"metric {self.name!r}"
        written = inspect.unwrap(fn)
        if inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written):
            raise ConfigError(f"{what}: its function is a generator; return one value (a list for a ranking)")
        self.is_async = is_async(fn)
        self._allowed = allowed
        self._call = Call(fn, self.name, self.is_async, self._allowed)
        self._inputs = Inputs(fn, self.name, scope)
        self._live = live
        for parameter in live.paths:
            if not self._inputs.takes(parameter):
                named = ", ".join(self._inputs.names) or "no inputs"
                raise ConfigError(f"{what}: inputs names {parameter!r}; the function has {named}")
        self._grading = Grading(self.name, kind, live)
        for attribute in ("__doc__", "__name__", "__qualname__", "__module__"):  # reads like the function it was
            if hasattr(fn, attribute):
                setattr(self, attribute, getattr(fn, attribute))
        self.__wrapped__ = fn

    @property
    def allowed_values(self) -> Any:
        """A list of categories, a ``(lowest, highest)`` or a `range`, or the length of a ranking."""
        return self._allowed.given

    @property
    def inputs_model(self) -> type[BaseModel]:
        """The pydantic model of the inputs: one field for each parameter."""
        return self._inputs.model

    @property
    def inputs(self) -> dict[str, str]:
        """Each input, and where in a Sample it is found; ``sample`` is the whole of it.

        Raises:
            ConfigError: see `info`.
        """
        return self._filling.places()

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself, unchanged; of a coroutine function, its coroutine."""
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.kind}_metric {self.name}({', '.join(self._inputs.parameters)}), allowed_values={self.allowed_values!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """By its place in its module; see `spangrade.metrics.importable`."""
        place = place_of(self)
        if place is None:
            raise pickle.PicklingError(
                f"metric {self.name!r} is not found in its module under its function's name; decorate a function at the top "
                "of a module to pickle it"
            )
        return at, (place,)

    def __copy__(self) -> "FunctionalMetric[P, R]":
        return self

    def __deepcopy__(self, memo: Any) -> "FunctionalMetric[P, R]":
        return self

    # --- by hand -------------------------------------------------------------------------------------------------------

    def score(self, /, *args: Any, **inputs: Any) -> MetricResult:
        """The result for these inputs, by name.

        A coroutine function is run to its end, also where an event loop is running: on a loop of ours, in a copy of the
        caller's context. From a coroutine, `ascore` is the better choice: this one blocks its caller.

        Returns:
            The function's return value as a `MetricResult`; one that it returned itself as it is. When the function raises,
            or returns none of the allowed values, ``value`` is None and ``reason`` says why.

        Raises:
            TypeError: an input is missing, mistyped or positional. An unknown name only warns, and is left out.
        """
        if args:
            raise self._inputs.positional("score", args, inputs)
        return self._call.scored(self._inputs.arguments(inputs))

    async def ascore(self, /, *args: Any, **inputs: Any) -> MetricResult:
        """`score`, awaited. A function that is no coroutine function runs on a thread, so that it may block."""
        if args:
            raise self._inputs.positional("ascore", args, inputs)
        arguments = self._inputs.arguments(inputs)
        return await (
            self._call.awaited(arguments) if self.is_async else asyncio.to_thread(self._call.scored, arguments)
        )

    def batch_score(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: bool | None = None,
    ) -> list[MetricResult]:
        """The results for many inputs, in their order.

        All inputs are checked before the function runs for the first; then at most ``concurrency`` run at a time, a
        function on threads, a coroutine function as tasks. With ``concurrency=1`` a function stays on the caller's thread.

        Args:
            inputs: a list, or any iterable, of dicts as `score` takes them.
            concurrency: how many at a time, 1 or more.
            progress: a bar on standard error. None: on a terminal, when it takes longer than two seconds and tqdm is
                installed (extra ``experiments``); True: always; False: never.

        Raises:
            TypeError: as for `score`, for the first item that is wrong; the message begins with ``inputs[its index]``.
            ConfigError: a concurrency below 1, or ``progress=True`` without tqdm.
        """
        if self.is_async:
            prepared = self._prepared(inputs)
            return functional_loop.run(lambda: self._batch(prepared, concurrency, progress))
        check_concurrency(concurrency)
        prepared = self._prepared(inputs)
        with Progress(len(prepared), self.name, progress) as bar:
            return on_threads(prepared, self._call.scored, concurrency, bar)

    async def abatch_score(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        progress: bool | None = None,
    ) -> list[MetricResult]:
        """`batch_score`, awaited. Cancelled, it begins no further item."""
        return await self._batch(self._prepared(inputs), concurrency, progress)

    async def _batch(self, prepared: list[Arguments], concurrency: int, progress: bool | None) -> list[MetricResult]:
        check_concurrency(concurrency)
        with Progress(len(prepared), self.name, progress) as bar:
            if self.is_async:
                return await in_tasks(prepared, self._call.awaited, concurrency, bar)
            return await awaited_threads(prepared, self._call.scored, concurrency, bar)

    def _prepared(self, inputs: Iterable[Mapping[str, Any]]) -> list[Arguments]:
        if isinstance(inputs, (Mapping, str, bytes)) or not isinstance(inputs, Iterable):
            raise TypeError(
                f"{self.name}: batch_score takes a list of dicts of inputs, not {shown(inputs)}; for one, use score"
            )
        prepared = []
        for index, item in enumerate(inputs):
            if not isinstance(item, Mapping):
                raise TypeError(f"inputs[{index}]: {shown(item)} is no dict of inputs by name")
            try:
                prepared.append(self._inputs.arguments(dict(item)))
            except TypeError as fault:
                raise TypeError(f"inputs[{index}]: {fault}") from None
        return prepared

    # --- on Samples ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _filling(self) -> Filling:
        return Filling(self._inputs, self._live.paths, f"metric {self.name!r}")

    @functools.cached_property
    def info(self) -> EvaluatorInfo:
        """Identity for counters and the wire. Whoever places the metric asks for it first.

        Raises:
            ConfigError: a parameter cannot be filled from a Sample.
        """
        assert self._filling is not None
        live, version = self._live, self._live.config.get("version")
        identity = {
            "config": self._live.config,
            "target": live.target,
            "kind": self.kind,
            "allowed_values": self.allowed_values,
            "inputs": {name: path.text for name, path in self._live.paths.items()},
        }
        return EvaluatorInfo(
            name=self.name,
            kind="code",
            version=None if version is None else str(version),
            config_hash=hash_config(identity),
            requires=self._live.requires,
            threshold=live.threshold,
            lower_is_better=live.lower_is_better,
            verdict=live.verdict and can_pass(self.kind, self.allowed_values),
            target=live.target,
        )

    @functools.cached_property
    def source_hash(self) -> str | None:
        """See `spangrade.metrics.source`."""
        return source_hash(self.fn)

    @property
    def process(self) -> bool:
        """Whether the pipeline runs it in a worker process."""
        return self._live.process

    @property
    def timeout(self) -> float:
        """Seconds after which a live run is given up."""
        return self._live.timeout

    def evaluate(self, sample: Sample) -> Verdict | Awaitable[Verdict]:
        """The verdict on one sample; see `Evaluator`.

        Raises:
            Skip: a required field is empty, or an input without a default is missing.
            TypeError: what the sample has is of the wrong type for an input.
            ReturnError: there is no value; the message is the reason.
            Exception: what the function raised.
        """
        if self._live.requires:
            missing = sample.missing(self._live.requires)
            if missing:
                raise Skip(f"{', '.join(missing)} missing")
        given = self._filling.given(sample)
        try:
            args, kwargs = self._inputs.arguments(given)
        except TypeError as fault:
            raise TypeError(
                f"{fault}. Live they come from the Sample: inputs={{name: path}} takes another part of it"
            ) from None
        returned: Any = self.fn(*args, **kwargs)
        if type(returned) not in NOT_AWAITABLE and inspect.isawaitable(returned):
            return self._later(returned)
        return self._grading.verdict(*self._call.read(returned))

    async def _later(self, returned: Any) -> Verdict:
        while inspect.isawaitable(returned):  # a coroutine may return another
            returned = await returned
        return self._grading.verdict(*self._call.read(returned))
