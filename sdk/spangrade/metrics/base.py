"""`BaseMetric`: a metric as a class, with typed results, runtime parameters, and a name of its own for every instance."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypedDict, TypeVar, Unpack, get_args, get_origin

from pydantic import BaseModel

from spangrade._values import dumps
from spangrade.metrics.checks import check_flag, check_requires, check_threshold, check_timeout, check_version
from spangrade.metrics.jsontype import Names, Shape, filled, shape_of
from spangrade.metrics.local import DEFAULT_TIMEOUT_S
from spangrade.metrics.schema import DefaultSchema, check_schema, plain, read_config
from spangrade.metrics.signature import Signature, read_signature
from spangrade.model.evaluator import EvaluatorInfo, Target, check_name, check_target, hash_config
from spangrade.model.sample import Sample
from spangrade.model.score import Rule

if TYPE_CHECKING:
    from spangrade.metrics.tree import Tree

T = TypeVar("T")
_MISSING: Any = object()


class Options(TypedDict, total=False):
    """What every metric may be told, as class attributes or by the constructor; they mean what they mean for `LocalMetric`."""

    threshold: float | None
    version: int | str | None
    requires: Sequence[str]
    target: Target
    lower_is_better: bool
    verdict: bool
    timeout: float | None
    process: bool


class BaseMetric(ABC, Generic[T]):
    """A metric as a class: ``class Words(BaseMetric[int])``, with ``evaluate(self, text) -> dict[str, int]``.

    ``T`` is any type that JSON has a form for: None, bool, int, float, str, list, tuple, dict with str keys, Literal, Union,
    TypedDict and what is nested of them, or Any. It is taken from the parametrisation, also through generic bases between,
    when the class is defined, and so is the signature of `evaluate`; what is wrong raises TypeError there. A class whose T
    is still open, that has no `evaluate` and no T, or that derives from `abc.ABC` itself, is a base for others.

    `evaluate` gets the output's text: a str as it is, a structured output as JSON, and None or empty text as they are, which
    are the metric's own edge cases. With a parameter named ``sample``, or annotated `Sample`, it gets the whole sample. It
    may be async. It returns ``self.result(value)``, or a dict of several results; None as a value means nothing to say. In
    the pipeline a number or bool is the score's value, a str its label, a list or dict its structured value; what is not of
    type T is an error with a reason.

    Attributes:
        name: identifies the class in a catalog; default the class's name.
        result_key: names this instance's field in the results, so that two differently configured instances of one class
            can stand side by side; default ``name``. On the wire a score is called ``name``, or ``name.result_key``.
        config_schema: a pydantic model of the runtime parameters; see `spangrade.config_schema`. Default: none are taken.
        config: the checked parameters, a model of ``config_schema`` that cannot be changed.
        threshold, version, requires, target, lower_is_better, verdict, timeout, process: as of `LocalMetric`.
        parent: the `CompositeMetric` that it is in, or None.
    """

    name: str = ""
    result_key: str = ""
    config_schema: ClassVar[type[BaseModel]] = DefaultSchema
    config: Any
    threshold: float | None = None
    version: int | str | None = None
    requires: Sequence[str] = ()
    target: Target = "root"
    lower_is_better: bool = False
    verdict: bool = True
    timeout: float | None = DEFAULT_TIMEOUT_S
    process: bool = False

    _signature: ClassVar[Signature | None] = None  # None: a base for others
    _shape: ClassVar[Shape | None] = None
    _says_name: ClassVar[bool] = False
    _says_key: ClassVar[bool] = False
    _parent: "Tree | None" = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        check_schema(cls.config_schema, f"{cls.__qualname__}.config_schema")
        cls._says_name = "name" in vars(cls)
        cls._says_key = cls._says_key or "result_key" in vars(cls)
        if isinstance(vars(cls).get("result_key"), str):
            check_name(cls.result_key, f"{cls.__qualname__}: the result_key as a")
        if not cls._says_name:
            cls._call(cls.__name__)
        elif not hasattr(vars(cls)["name"], "__get__"):
            cls._call(check_name(cls.name, f"{cls.__qualname__}: the metric's"))
        elif not cls._says_key:  # a property: each instance has its own, and its key with it
            cls.result_key = ""
        cls._check_definition()

    @classmethod
    def _call(cls, name: str) -> None:
        """Name the class, and with it its field, unless the class says its key itself."""
        cls.name = name
        if not cls._says_key:
            cls.result_key = name

    @classmethod
    def _check_definition(cls) -> None:
        cls._signature = cls._shape = None
        given = _argument(cls, BaseMetric)
        abstract = getattr(cls.evaluate, "__isabstractmethod__", False)
        if given is _MISSING:
            if abstract:
                return
            raise TypeError(
                f"{cls.__qualname__} does not say what its results are; write class {cls.__name__}(BaseMetric[float]), or "
                "another type that JSON has"
            )
        if _is_open(given):
            return
        try:
            cls._shape = shape_of(given, Names.of(cls))
        except TypeError as fault:
            raise TypeError(f"{cls.__qualname__}: BaseMetric[{_said(given)}]: {fault}") from None
        if not abstract:
            cls._signature = read_signature(cls, cls._shape, _said(given))
        elif ABC not in cls.__bases__ and not any(
            getattr(m, "__isabstractmethod__", False) for m in vars(cls).values()
        ):
            raise TypeError(
                f"{cls.__qualname__} has no evaluate; write def evaluate(self, text) -> dict[str, {_said(given)}], or, if it is "
                f"a base for others, class {cls.__name__}(BaseMetric[{_said(given)}], ABC)"
            )

    def __init__(
        self,
        config: Mapping[str, Any] | BaseModel | None = None,
        *,
        result_key: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Check ``config`` against `config_schema`; set this instance's ``result_key`` and options.

        Raises:
            ConfigError: a parameter or option that is unknown or wrong; the message names it.
            TypeError: the class is only a base for others.
        """
        if self._signature is None:
            raise TypeError(
                f"{type(self).__qualname__} is a base for others: its result type is open; derive a class that says it"
            )
        self.config = read_config(self.config_schema, config, f"metric {self.name!r}")
        if result_key is not None:
            self.result_key = check_name(result_key, f"metric {self.name!r}: its result_key as a")
        elif not self.result_key:  # the class's name is a property
            self.result_key = self.name
        for option, value in options.items():
            if option not in Options.__annotations__:
                known = ", ".join(("config", "result_key", *Options.__annotations__))
                raise TypeError(f"{type(self).__qualname__} takes no {option!r}; it takes {known}")
            setattr(self, option, value)
        if options:
            described(self, self.name)

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any] | BaseModel | None = None,
        *,
        result_key: str | None = None,
        **parameters: Any,
    ) -> Self:
        """A metric made of parameters as a file holds them: a mapping, a model, or by keyword. As strict as the constructor.

        ``result_key`` is the new instance's, also where the class's own constructor does not take it.

        Raises:
            ConfigError: a parameter that is unknown, missing, or of the wrong type; the message names it.
        """
        if parameters and config is not None:
            config = {**(dict(config) if isinstance(config, (Mapping, BaseModel)) else {}), **parameters}
        made = cls(parameters or config) if parameters or config is not None else cls()
        if result_key is not None:
            made.result_key = check_name(result_key, f"metric {made.name!r}: its result_key as a")
        return made

    @abstractmethod
    def evaluate(self, text: Any, /) -> dict[str, T] | Awaitable[dict[str, T]]:
        """The results on one output's text, or on one `Sample`, by name."""

    def result(self, value: T) -> dict[str, T]:
        """``{self.result_key: value}``."""
        return {self.result_key: value}

    @property
    def parent(self) -> "Tree | None":
        """The tree that it is in; None outside of any."""
        parent = self._parent
        return parent if parent is not None and parent.holds(self) else None  # a copy of a leaf is in no tree

    def __repr__(self) -> str:
        key = "" if self.result_key == self.name else f" as {self.result_key!r}"
        return f"<metric {self.name!r}{key}>"


def output_text(sample: Sample) -> str | None:
    """The output as text: a str as it is, a structured one as JSON, None where there is none."""
    output = sample.output
    return output if output is None or isinstance(output, str) else dumps(output)


def argument_for(metric: BaseMetric[Any], given: Any) -> Any:
    """What `evaluate` of ``metric`` gets, of a `Sample` or of a text."""
    takes_sample = metric._signature is not None and metric._signature.takes_sample
    if isinstance(given, Sample):
        return given if takes_sample else output_text(given)
    return Sample(output=given) if takes_sample else given


def wire_name(metric: BaseMetric[Any]) -> str:
    """The evaluator's name: the metric's, with the ``result_key`` behind it where that is another."""
    return metric.name if metric.result_key == metric.name else f"{metric.name}.{metric.result_key}"


def check_made(metric: BaseMetric[Any]) -> None:
    """TypeError for a metric whose own constructor left ours out."""
    if not hasattr(metric, "config"):
        kind = type(metric).__qualname__
        raise TypeError(f"{kind}.__init__ does not call super().__init__(config), so its parameters were never checked")


def identity(metric: BaseMetric[Any]) -> dict[str, Any]:
    """What tells a metric from others beside its name: its parameters and version; empty where it has neither."""
    check_made(metric)
    found: dict[str, Any] = {}
    if metric.version is not None:
        found["version"] = metric.version
    config = plain(metric.config)
    if config:
        found["config"] = config
    return found


def described(
    metric: BaseMetric[Any], name: str, config: Mapping[str, Any] | None = None
) -> tuple[EvaluatorInfo, float]:
    """A metric's identity, called ``name``, and its time limit in seconds; its options are checked.

    Args:
        config: what identifies it beside the name; default its parameters and version.

    Raises:
        ConfigError: an option that cannot work.
        TypeError: see `check_made`.
    """
    what = f"metric {name!r}"
    config = identity(metric) if config is None else config
    check_flag(metric.process, "process", what)
    target, version = check_target(metric.target, what), check_version(metric.version, what)
    info = EvaluatorInfo(
        name=check_name(name, "metric"),
        version=None if version is None else str(version),
        config_hash=hash_config({"config": config, "target": target}) if config else "",
        requires=check_requires(metric.requires, what),
        threshold=check_threshold(metric.threshold, what),
        lower_is_better=check_flag(metric.lower_is_better, "lower_is_better", what),
        verdict=check_flag(metric.verdict, "verdict", what),
        target=target,
    )
    return info, check_timeout(DEFAULT_TIMEOUT_S if metric.timeout is None else metric.timeout, what)


def rule_of(metric: BaseMetric[Any]) -> Rule:
    """How its numbers become pass or fail."""
    return Rule(metric.threshold, metric.lower_is_better, metric.verdict)


def _argument(cls: type, base: type) -> Any:
    """What ``cls`` gives ``base`` for its one type variable, through all generic bases between; `_MISSING` if nothing."""
    for given in vars(cls).get("__orig_bases__", cls.__bases__):
        origin = get_origin(given) or given
        if not isinstance(origin, type) or not issubclass(origin, base):
            continue
        args = get_args(given)
        if origin is base:
            found = args[0] if args else _MISSING
        else:
            found = _argument(origin, base)
            if _is_open(found):
                found = filled(found, dict(zip(origin.__parameters__, args, strict=False))) if args else _MISSING  # type: ignore[attr-defined]
        if found is not _MISSING:
            return found
    return _MISSING


def _is_open(given: Any) -> bool:
    return isinstance(given, TypeVar) or bool(getattr(given, "__parameters__", ()) and get_origin(given) is not None)


def _said(given: Any) -> str:
    if isinstance(given, type) and not get_args(given):
        return given.__name__
    return str(given).replace("typing.", "")
