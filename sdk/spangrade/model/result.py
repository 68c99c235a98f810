"""`MetricResult`: what a functional metric says of its inputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


def _plain(other: Any) -> Any:
    return other.value if isinstance(other, MetricResult) else other


@dataclass(frozen=True, slots=True, eq=False)
class MetricResult:
    """A value and, where there is one, the reason for it.

    It stands for its value in comparisons, sums, ``float()``, ``len()``, indexing and truth: ``result == "pass"``,
    ``sum(results) / len(results)``. The reason takes no part in that, so two results are equal when their values are.

    Attributes:
        value: what was returned: a category, a number, a list. None when there is no result: the function raised, or what
            it returned is none of the allowed values.
        reason: why, in words; for a value of None what went wrong.
    """

    value: Any
    reason: str | None = None

    def __repr__(self) -> str:
        return f"MetricResult(value={self.value!r}, reason={self.reason!r})"

    def __eq__(self, other: object) -> bool:
        return bool(self.value == _plain(other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < _plain(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= _plain(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > _plain(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= _plain(other))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __getitem__(self, key: Any) -> Any:
        return self.value[key]

    def __add__(self, other: Any) -> Any:
        return self.value + _plain(other)

    def __radd__(self, other: Any) -> Any:
        return other + self.value

    def __sub__(self, other: Any) -> Any:
        return self.value - _plain(other)

    def __rsub__(self, other: Any) -> Any:
        return other - self.value

    def __mul__(self, other: Any) -> Any:
        return self.value * _plain(other)

    def __rmul__(self, other: Any) -> Any:
        return other * self.value

    def __truediv__(self, other: Any) -> Any:
        return self.value / _plain(other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.value

    def to_dict(self) -> dict[str, Any]:
        """``{"result": value, "reason": reason}``."""
        return {"result": self.value, "reason": self.reason}
