"""What a comparison takes when it is not told."""

from typing import Final

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 10_000
SEED: Final = 20_411
