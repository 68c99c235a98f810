"""How well passages bear out a claim, as six numbers. A model's word vectors, words, numbers and a denial.

The evidence for a claim is at most four passages, chosen one after the other so that together they cover its words best
(a greedy cover): what stands in two places counts, and what is added beside it changes nothing unless it covers more.
A word is covered as well as its nearest word in the evidence is near: the cosine of the vectors that the model gives
both in their sentences (BERTScore's recall turned round: Zhang et al. 2020), so a synonym is nearly covered and a word
that is there in quite another sense is not. Words weigh by rarity, for which their number in the model's vocabulary stands.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangrade.metrics.builtin.claims import Claim, Word, read
from spangrade.metrics.builtin.embedding import Embedded

MAX_EVIDENCE: Final = 4
#: What `Support.features` holds, in its order; for each whether more of it speaks for the claim.
FEATURES: Final = {"words": True, "phrases": True, "name": True, "rare": True, "numbers": False, "conflict": False}

_FIRST_WORD: Final = 1_996  # "the": where words begin in the vocabulary, which is ordered by frequency
_SMALL_PRODUCT: Final = 250_000  # multiplications; OpenBLAS uses further threads from 262,144 on
_RARE: Final = 12_000
_SPLIT: Final = 0.7  # added to the weight of a word that the vocabulary holds in pieces only


@dataclass(frozen=True, slots=True)
class Support:
    """What the evidence says of one claim.

    Attributes:
        features: the numbers named in `FEATURES`: how well its words are covered (0 to 1); the share of neighbouring
            pairs of words that stand so in the evidence; the worst covered name and the worst covered rare word (1 when
            there is none); numbers that the evidence does not have (at most 3); where the evidence says
            otherwise (see `_conflict`), the first number squared, else 0.
        evidence: indices of the passages, best first.
        weight: of the claim among others: the sum of its words' weights.
        uncovered: its words that are covered least, worst first.
    """

    features: tuple[float, ...]
    evidence: tuple[int, ...]
    weight: float
    uncovered: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Passages:
    """What claims are held against: passages, and the vectors of all their tokens in one matrix."""

    read: tuple[Claim, ...]
    tokens: Any  # float32, one row for each token
    starts: tuple[int, ...]  # the first row of each passage

    @classmethod
    def of(cls, read: Sequence[Claim], seen: Sequence[Embedded]) -> "Passages":
        """Those that the model saw something of."""
        import numpy as np

        kept = [(claim, one.tokens) for claim, one in zip(read, seen, strict=True) if len(one.tokens)]
        ends = list(itertools.accumulate(len(tokens) for _, tokens in kept))
        tokens = np.concatenate([tokens for _, tokens in kept]).astype(np.float32) if kept else np.zeros((0, 1))
        return cls(tuple(claim for claim, _ in kept), tokens, (0, *ends[:-1]))


def support(claim: Claim, seen: Embedded, passages: Passages) -> Support | None:
    """The numbers of one claim against passages; None when it has no word to look for."""
    import numpy as np

    rows, words = [], []
    for word in claim.words:
        at = [i for i, (start, end) in enumerate(seen.offsets) if word.start <= start < end <= word.end]
        if at:  # else it was cut off
            rows.append(at)
            words.append(word)
    if not words or not passages.read:
        return None
    average = np.zeros((len(words), len(seen.tokens)), dtype=np.float32)
    for index, at in enumerate(rows):
        average[index, at] = 1 / len(at)
    rarity = [(max(int(seen.ids[i]) for i in at), len(at) > 1) for at in rows]
    weights = np.array([0.5 + np.log(max(rank, _FIRST_WORD) / _FIRST_WORD) + _SPLIT * split for rank, split in rarity])
    share = weights / weights.sum()
    nearest = np.maximum.reduceat(_products(seen.tokens.astype(np.float32), passages.tokens), passages.starts, axis=1)
    covered = (average @ nearest).T.astype(np.float64)  # passages by words
    chosen, best = _cover(covered, share)
    evidence = [passages.read[i] for i in chosen]
    names = [value for value, word in zip(best, words, strict=True) if word.name]
    rare = [value for value, (rank, split) in zip(best, rarity, strict=True) if split or rank > _RARE]
    known = frozenset().union(*(passage.numbers for passage in evidence))
    pairs = frozenset().union(*(passage.pairs for passage in evidence))
    stems = {word.stem for passage in evidence for word in passage.words}
    ordered = list(itertools.pairwise(word.stem for word in words))
    phrases = sum(pair in pairs for pair in ordered) / len(ordered) if ordered else float(words[0].stem in stems)
    worst = sorted((value, w.start, w.end) for value, w in zip(best, words, strict=True) if w.stem not in stems)
    covers = float(best @ share)
    return Support(
        features=(
            covers,
            phrases,
            float(min(names, default=1.0)),
            float(min(rare, default=1.0)),
            float(min(len(claim.numbers - known), 3)),
            _conflict(claim, evidence) * covers**2,
        ),
        evidence=tuple(chosen),
        weight=float(weights.sum()),
        uncovered=tuple(claim.text[start:end] for _, start, end in worst),
    )


def _products(ours: Any, theirs: Any) -> Any:
    """``ours @ theirs.T`` on this thread alone.

    A product of this size makes OpenBLAS, which numpy brings, wake a thread on every core and leave it spinning for a
    while, in the application's process. Smaller ones it does where it is called; together they take no longer.
    """
    import numpy as np

    found = np.empty((len(ours), len(theirs)), dtype=np.float32)
    step = max(1, _SMALL_PRODUCT // (max(len(ours), 1) * max(theirs.shape[1], 1)))
    for start in range(0, len(theirs), step):
        found[:, start : start + step] = ours @ theirs[start : start + step].T
    return found


def _conflict(claim: Claim, evidence: Sequence[Claim]) -> bool:
    """Whether the evidence says otherwise.

    It does where its first passage denies a word that the claim does not deny, or the reverse; where it has another
    number before or after the same word; and where it has another name between the same two words.
    """
    first = evidence[0]
    shared = {word.stem for word in first.words}.intersection(word.stem for word in claim.words)
    if any((stem in first.denied) != (stem in claim.denied) for stem in shared):
        return True
    known = {word.stem for passage in evidence for word in passage.words}
    placed = [other for passage in evidence for other in _placed(passage)]
    return any(
        _another(here, there)
        for here in _placed(claim)
        if here[1].stem not in known and (here[1].name or here[1].is_number)
        for there in placed
    )


def _another(here: tuple[str, Word, str], there: tuple[str, Word, str]) -> bool:
    """Whether two numbers, or two names, stand in one place."""
    before, after = here[0] == there[0] != "", here[2] == there[2] != ""
    if here[1].is_number:
        return there[1].is_number and (before or after)
    return there[1].name and before and after


def _placed(claim: Claim) -> Iterator[tuple[str, Word, str]]:
    """Each word between the stems of its neighbours, ``""`` at the ends."""
    stems = ["", *(word.stem for word in claim.words), ""]
    return zip(stems, claim.words, stems[2:], strict=False)


def _cover(covered: Any, share: Any) -> tuple[list[int], Any]:
    """Indices of passages that together cover the words best, and how well each word is covered then."""
    import numpy as np

    best = np.zeros(covered.shape[1])
    chosen: list[int] = []
    while len(chosen) < MAX_EVIDENCE:
        totals = np.maximum(covered, best) @ share
        index = int(totals.argmax())
        if chosen and totals[index] <= float(best @ share) + 1e-6:
            break
        best = np.maximum(best, covered[index])
        chosen.append(index)
    return chosen, best


@functools.lru_cache(maxsize=1_024)
def read_once(text: str) -> Claim:
    """`read`, remembered: documents come back."""
    return read(text)
