"""Check digits and ranges: what tells a card or account number from any other row of digits.

Sources: ISO/IEC 7812 (Luhn, issuer ranges), ISO 13616 (IBAN), the US Social Security Administration (ranges never issued), the issuing
countries for national numbers.
"""

from collections.abc import Callable, Iterator
from typing import Final

#: Length of an IBAN by country (SWIFT IBAN registry).
IBAN_LENGTHS: Final = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29, "BY": 28, "CH": 21,
    "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18,
    "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24,
    "ME": 22, "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29,
    "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23,
    "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip


def luhn(digits: str) -> bool:
    """The check digit of card numbers."""
    total = 0
    for place, character in enumerate(reversed(digits)):
        value = int(character) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def card_lengths(digits: str) -> tuple[int, ...]:
    """How long a card number that begins like this may be; empty when no issuer's number does."""
    two, three, four = int(digits[:2]), int(digits[:3]), int(digits[:4])
    if digits[0] == "4":
        return (16, 19, 13)
    if 51 <= two <= 55 or 2221 <= four <= 2720:
        return (16,)
    if two in (34, 37):
        return (15,)
    if four == 6011 or two == 65 or 644 <= three <= 649 or 3528 <= four <= 3589 or two == 62:
        return (16, 17, 18, 19)
    if 300 <= three <= 305 or two in (36, 38, 39):
        return (14, 16, 19)
    return ()


def is_card(digits: str) -> bool:
    """Issuer range, length and check digit; not all one digit."""
    return len(digits) >= 13 and len(digits) in card_lengths(digits) and len(set(digits)) > 1 and luhn(digits)


def is_iban(compact: str) -> bool:
    """Length of its country and ISO 7064 mod 97."""
    if IBAN_LENGTHS.get(compact[:2]) != len(compact):
        return False
    return int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4])) % 97 == 1


def is_ssn(digits: str) -> bool:
    """Never issued: area 000, 666 and 900 to 999, group 00, serial 0000; and two numbers that became famous."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    if area in ("000", "666") or area[0] == "9" or group == "00" or serial == "0000":
        return False
    return digits not in ("078051120", "219099999")


def is_dni(text: str) -> bool:
    """Spain: eight digits (or X, Y, Z and seven) and the letter of the rest by 23."""
    body = text[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(body) % 23] == text[-1]


def is_codice_fiscale(text: str) -> bool:
    """Italy: the sixteenth character checks the fifteen before it."""
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    total = 0
    for place, character in enumerate(text[:15], 1):
        value = int(character) if character.isdigit() else ord(character) - 65
        total += odd[value] if place % 2 else value
    return chr(65 + total % 26) == text[15]


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def is_cpf(digits: str) -> bool:
    """Brazil: two check digits by 11; not all one digit."""
    if len(set(digits)) == 1:
        return False
    first = _weighted(digits, tuple(range(10, 1, -1))) * 10 % 11 % 10
    second = _weighted(digits, tuple(range(11, 1, -1))) * 10 % 11 % 10
    return digits[9:] == f"{first}{second}"


def is_bsn(digits: str) -> bool:
    """Netherlands: the test of eleven."""
    return _weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0 and len(set(digits)) > 1


def is_nhs(digits: str) -> bool:
    """United Kingdom: mod 11."""
    check = 11 - _weighted(digits, tuple(range(10, 1, -1))) % 11
    return check != 10 and int(digits[9]) == check % 11 and len(set(digits)) > 1


def is_nir(text: str) -> bool:
    """France: the key is 97 less the number by 97; Corsica's 2A and 2B count as 19 and 18."""
    body = text[:13].replace("2A", "19").replace("2B", "18")
    return body.isdigit() and 97 - int(body) % 97 == int(text[13:])


def is_pesel(digits: str) -> bool:
    """Poland: a date with its century in the month, and a check digit."""
    month, day = int(digits[2:4]) % 20, int(digits[4:6])
    check = (10 - _weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10) % 10
    return 1 <= month <= 12 and 1 <= day <= 31 and int(digits[10]) == check


def is_steuer_id(digits: str) -> bool:
    """Germany: eleven digits, the first not 0, one or two of the first ten repeated, ISO 7064 mod 11,10."""
    counts = sorted(digits[:10].count(d) for d in set(digits[:10]))
    if digits[0] == "0" or len(counts) not in (8, 9) or counts[-1] > 3:
        return False
    product = 10
    for digit in digits[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(digits[10])


_TIMES: Final = tuple(
    tuple((i + j) % 5 if i < 5 and j < 5 else
          (i - 5 - j) % 5 + 5 if i >= 5 and j < 5 else
          (i + j - 5) % 5 + 5 if i < 5 else
          (i - j) % 5 for j in range(10))
    for i in range(10)
)  # fmt: skip
_TURNS: Final = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def is_aadhaar(digits: str) -> bool:
    """India: Verhoeff's check digit; does not begin with 0 or 1."""
    turns: list[tuple[int, ...]] = list(_TURNS)
    while len(turns) < 8:
        turns.append(tuple(turns[-1][_TURNS[1][i]] for i in range(10)))
    check = 0
    for place, digit in enumerate(reversed(digits)):
        check = _TIMES[check][turns[place % 8][int(digit)]]
    return check == 0 and digits[0] not in "01" and len(set(digits)) > 1


def numbers_in_groups(text: str, valid: Callable[[str], bool], longest: int) -> Iterator[tuple[int, int]]:
    """``(start, end)`` of numbers in a run of digits that single spaces or hyphens divide, from group to group."""
    starts = [i for i, c in enumerate(text) if c.isdigit() and (i == 0 or not text[i - 1].isdigit())]
    after = 0
    for start in starts:
        if start < after:
            continue
        digits, ends = "", []
        for at in range(start, len(text)):
            if text[at].isdigit():
                digits += text[at]
                if len(digits) > longest:
                    break
                if at + 1 == len(text) or not text[at + 1].isdigit():
                    ends.append((at + 1, digits))
        for end, found in reversed(ends):
            if valid(found):
                yield start, end
                after = end
                break
