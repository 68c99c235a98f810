"""How a judge's model is asked: by whom, for how long, at what price, and whether what was said before will do. None of it is
part of the judge's identity."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from spangrade.errors import ConfigError, JudgeError
from spangrade.judges import checks
from spangrade.judges.cache import DEFAULT_ENTRIES, DEFAULT_MAX_AGE_S, Cache
from spangrade.judges.grading import Grading, grade
from spangrade.judges.limiter import Limiter
from spangrade.judges.prices import GivenPrice, ListPrice, Price, load_soon
from spangrade.judges.prompt import Prompt
from spangrade.judges.providers import Endpoint, JudgeClient, client_at, client_from_environment, from_environment
from spangrade.judges.scale import Scale
from spangrade.model.gate import Gate

TIMEOUT: Final = 60.0


@dataclass(frozen=True, slots=True)
class Asking:
    """``client``: None asks the environment's endpoint; ``timeout``: seconds for one sample, retries included; ``price``: None
    is that of the installed list."""

    client: JudgeClient | None = None
    timeout: float = TIMEOUT
    cache: Cache | None = None
    price: Price | None = None

    def price_of(self, model: str) -> Price:
        """What the model costs."""
        return self.price or ListPrice(model)

    def ask(
        self, prompt: Prompt, model: str, scale: Scale, temperature: float, client: JudgeClient | None = None
    ) -> Grading:
        """Ask, whatever was said before; ``client`` instead of the judge's own.

        Raises:
            JudgeError: no verdict, or no endpoint.
        """
        asked, name = client or self.client, model
        if self.price is None:
            load_soon()
        if asked is None:
            asked, name = client_from_environment(model)
        return grade(
            prompt,
            asked,
            model=name,
            scale=scale,
            temperature=temperature,
            timeout=self.timeout,
            price=self.price_of(model),
        )

    def answer(self, prompt: Prompt, model: str, scale: Scale, temperature: float) -> Grading:
        """What was said of the same prompt before, where that is kept; else ask.

        Raises:
            JudgeError: see `ask`.
        """
        if self.cache is None:
            return self.ask(prompt, model, scale, temperature)
        key = (prompt.hash, model, scale.name, temperature)
        found = self.cache.get(key)
        if found is None:
            found = self.ask(prompt, model, scale, temperature)
            self.cache.put(key, found)
        return found


class Asked(ABC):
    """What of a judge can be changed without making it another judge."""

    name: str
    _asking: Asking

    @abstractmethod
    def resolved_model(self) -> str | None:
        """The model's name, as far as it is known."""

    @abstractmethod
    def asked(self, **changes: Any) -> Self:
        """A copy that is asked otherwise: fields of `Asking`."""

    @property
    def timeout(self) -> float:
        """Seconds for one sample, retries included; 60 unless `with_timeout` gave another."""
        return self._asking.timeout

    def with_client(self, client: JudgeClient) -> Self:
        """A copy that grades through ``client`` and not through the environment's endpoint."""
        return self.asked(client=client)

    def at(self, endpoints: Iterable[Endpoint]) -> Self:
        """A copy that asks the first of ``endpoints`` that serves its model. Where none does, or the judge has a client of
        its own, the judge itself.

        Raises:
            JudgeError: kind configuration, for an endpoint that cannot be used.
        """
        model = self.resolved_model()
        if self._asking.client is None and model is not None:
            for endpoint in endpoints:
                if endpoint.serves(model):
                    return self.with_client(client_at(endpoint))
        return self

    def with_cache(self, max_entries: int = DEFAULT_ENTRIES, max_age: float = DEFAULT_MAX_AGE_S) -> Self:
        """A copy that does not ask twice about the same prompt. Its copies share the cache, and `preview` does not use it.

        Args:
            max_entries: 1 or more; the least recently used ones go first.
            max_age: seconds that an entry is believed, default a day.

        A score from the cache has ``spangrade.judge.cached``, and neither tokens nor cost. The same sample graded again
        tells nothing of how stable the judge is: leave the cache off where that is measured.
        """
        if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
            raise ConfigError(f"judge {self.name!r}: cache {max_entries!r} is not a number of entries, 1 or more")
        seconds = checks.number(max_age, 0, 3.2e9, f"judge {self.name!r}: cache max_age")
        return self.asked(cache=Cache(max_entries, seconds))

    @property
    def gate(self) -> Gate | None:
        """What limits the calls to the judge's endpoint; None where its client has nothing of the kind, or none is set."""
        try:
            if self._asking.client is None:
                return from_environment(self.resolved_model() or "")[0].limiter
            found = getattr(self._asking.client, "limiter", None)
        except JudgeError:  # `evaluate` will say it
            return None
        return found if isinstance(found, Limiter) else None

    @property
    def beyond_gate(self) -> bool:
        """Whether it may give a verdict while its endpoint is left alone: from its cache."""
        return self._asking.cache is not None

    @property
    def gates(self) -> list[Gate]:
        """Those of all endpoints that are asked."""
        return [] if self.gate is None else [self.gate]

    def without_cache(self) -> Self:
        """A copy that asks, whatever was said before."""
        return self.asked(cache=None)

    @property
    def price(self) -> Price | None:
        """What the judge's model costs: as `with_price` said, else by the installed list; None without a model."""
        model = self.resolved_model()
        return None if model is None else self._asking.price_of(model)

    def with_price(self, price: Mapping[str, float]) -> Self:
        """A copy whose model costs so many US dollars per million tokens: ``{"input": 0.4, "output": 1.6}``.

        Raises:
            ConfigError: other keys, or what is no price.
        """
        return self.asked(price=GivenPrice(price))

    def with_timeout(self, seconds: float) -> Self:
        """A copy with another limit for one sample."""
        return self.asked(timeout=checks.number(seconds, 0.001, 3600, f"judge {self.name!r}: timeout"))
