"""A class metric's runtime parameters: a pydantic model, and the strict way a configuration becomes one."""

import types
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from spangrade._secrets import HIDDEN, is_secret
from spangrade._values import bounded, captured, snapshot
from spangrade.errors import ConfigError


class DefaultSchema(BaseModel):
    """The schema of a metric that declares none: it takes no parameter."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


Class = TypeVar("Class", bound=type)


def config_schema(schema: type[BaseModel]) -> Callable[[Class], Class]:
    """``@config_schema(Schema)`` above a `BaseMetric`: its runtime parameters. The same as ``config_schema = Schema`` in it.

    Raises:
        TypeError: ``schema`` is no pydantic model's class, or what is decorated no metric's.
    """
    check_schema(schema, "@config_schema")

    def declare(cls: Class) -> Class:
        if not isinstance(cls, type) or not hasattr(cls, "from_config"):
            raise TypeError(f"@config_schema(...) stands above a BaseMetric's class, not above {cls!r}")
        cls.config_schema = schema  # type: ignore[attr-defined]
        return cls

    return declare


def check_schema(schema: Any, where: str) -> None:
    """`TypeError` for what is no pydantic model's class."""
    if not isinstance(schema, type) or not issubclass(schema, BaseModel) or schema is BaseModel:
        raise TypeError(
            f"{where}: {schema!r} is no schema; declare the parameters as a pydantic model: "
            "class Config(pydantic.BaseModel): min_words: int = 5"
        )


def read_config(schema: type[BaseModel], given: Any, what: str) -> BaseModel:
    """``given`` (a mapping, a model of ``schema``, None for no parameter) as a model of ``schema`` that cannot be changed.

    Strict: no value is converted (``"5"`` is no int), and an unknown name is an error at any depth, unless the model there
    says ``extra="allow"``. What JSON and YAML have no form for may be given in theirs: an enum by its value, a date by its
    text, a tuple as a list.

    Raises:
        ConfigError: the message names each parameter that is wrong.
    """
    if isinstance(given, schema):
        return _as_frozen(given, type(given))
    if isinstance(given, BaseModel):
        raise ConfigError(f"{what}: its configuration is a {schema.__name__}, not a {type(given).__name__}")
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(
            f"{what}: its configuration is a dict of parameters or a {schema.__name__}, not a {type(given).__name__}"
        )
    parameters = dict(given or {})
    try:
        found = _validated(_frozen(schema), parameters)
    except ValidationError as fault:
        raise ConfigError(f"{what}: {_explained(fault)}{_takes(schema)}") from None
    if unknown := list(_unknown(parameters, found, "")):
        raise ConfigError(f"{what}: {_no_such(unknown)}{_takes(schema)}")
    return found


def plain(config: BaseModel) -> Any:
    """The configuration as plain JSON, for its hash and for people. Secrets that say so (`SecretStr`) stay hidden."""
    try:
        return config.model_dump(mode="json")
    except (PydanticSerializationError, ValueError):  # a field of any Python type
        return snapshot(config.model_dump())


def _validated(frozen: type[BaseModel], parameters: dict[str, Any]) -> BaseModel:
    try:
        return frozen.model_validate(parameters, strict=True)
    except ValidationError as fault:
        try:
            text = to_json(parameters)
        except (PydanticSerializationError, ValueError):  # it holds Python objects, so it was no file's
            raise fault from None
        return frozen.model_validate_json(text, strict=True)


@lru_cache(maxsize=1_024)
def _frozen(schema: type[BaseModel]) -> type[BaseModel]:
    """A subclass whose models take no unknown parameter, and cannot be changed: what a score says it was made with stays
    true. They are equal to the schema's own."""
    extra = schema.model_config.get("extra")
    if schema.model_config.get("frozen") and extra in ("forbid", "allow"):
        return schema

    def equal(self: BaseModel, other: Any) -> bool:
        return isinstance(other, schema) and dict(self) == dict(other)

    body: dict[str, Any] = {
        "model_config": ConfigDict(frozen=True, extra="allow" if extra == "allow" else "forbid"),
        "__reduce__": lambda self: (_as_frozen, (_with_class(self, schema), schema)),
        **{name: getattr(schema, name) for name in ("__module__", "__qualname__", "__doc__")},
    }
    if schema.__eq__ is BaseModel.__eq__:
        body["__eq__"] = equal
    made: type[BaseModel] = types.new_class(schema.__name__, (schema,), exec_body=lambda space: space.update(body))
    return made


def _as_frozen(model: BaseModel, schema: type[BaseModel]) -> BaseModel:
    return _with_class(model, _frozen(schema))


def _with_class(model: BaseModel, kind: type[BaseModel]) -> BaseModel:
    copy = model.model_copy()
    object.__setattr__(copy, "__class__", kind)
    return copy


def _unknown(given: Any, found: Any, at: str) -> Iterator[str]:
    """The names in ``given`` that a model within ``found``, which was made of it, does not declare, as paths. Pydantic says
    so of the outermost model; one within it leaves them out without a word."""
    if isinstance(found, BaseModel) and isinstance(given, Mapping):
        names = _declared(type(found))
        for name, value in given.items():
            if name in names:
                yield from _unknown(value, getattr(found, names[name], None), f"{at}{name}.")
            elif type(found).model_config.get("extra") != "allow" and not _reads_otherwise(type(found)):
                yield f"{at}{name}"
    elif isinstance(found, dict) and isinstance(given, Mapping):
        for name, value in given.items():
            yield from _unknown(value, found.get(name), f"{at}{name}.")
    elif isinstance(found, (list, tuple)) and isinstance(given, (list, tuple)):
        for i, (value, item) in enumerate(zip(given, found, strict=False)):
            yield from _unknown(value, item, f"{at}{i}.")


def _declared(kind: type[BaseModel]) -> dict[str, str]:
    """What a model may be given → its field."""
    found: dict[str, str] = {}
    for name, field in kind.model_fields.items():
        found[name] = name
        for alias in (field.alias, field.validation_alias):
            for one in getattr(alias, "choices", [alias]):  # an alias, a path of them, or a choice
                first = one if isinstance(one, str) else getattr(one, "path", [None])[0]
                if isinstance(first, str):
                    found[first] = name
    return found


def _reads_otherwise(kind: type[BaseModel]) -> bool:
    """Whether a validator of the model's own sees what it is given before its fields do."""
    return any(d.info.mode != "after" for d in kind.__pydantic_decorators__.model_validators.values())


def _explained(fault: ValidationError) -> str:
    lines = []
    for error in fault.errors(include_url=False):
        name = ".".join(str(part) for part in error["loc"]) or "the configuration"
        if error["type"] == "extra_forbidden":
            lines.append(_no_such([name]))
        elif error["type"] == "missing":
            lines.append(f"{name!r} is missing")
        else:
            lines.append(f"{name!r} is {_shown(name, error['input'])}: {error['msg']}")
    return "; ".join(lines)


def _no_such(names: list[str]) -> str:
    return f"there is no parameter {', '.join(map(repr, names))}"


def _shown(name: str, value: Any) -> str:
    if is_secret(name.rpartition(".")[2], value):
        return HIDDEN
    return bounded(repr(captured(value, 200)), 80)


def _takes(schema: type[BaseModel]) -> str:
    names = ", ".join(schema.model_fields)
    return f" (it takes {names})" if names else " (it takes no parameters; declare them with config_schema)"
