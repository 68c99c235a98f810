"""How long to wait before an upstream is tried again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between tries: ``first``, doubled up to ``most``, each between half and all of it. A time that the upstream
    names is waited in full (up to ``told_most``: what names a day is a mistake) and up to a tenth longer."""

    first: float = 1.0
    most: float = 30.0
    told_most: float = 600.0

    def delay(self, tries: int, told: float | None, chance: float) -> float:
        """``tries``: failed ones so far, from 1. ``chance``: 0 to 1."""
        if told is not None and told > 0:
            return min(told, self.told_most) * (1 + chance / 10)
        return float(min(self.most, self.first * 2 ** min(tries - 1, 30)) * (1 + chance) / 2)
