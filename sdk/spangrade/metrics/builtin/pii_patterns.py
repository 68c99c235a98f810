"""Where personal data and secrets stand in a text, by kind: a shape, then what tells it from its look-alikes.

Every pattern takes time that grows with the text only: no repetition inside a repetition of the same characters.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Final

from spangrade.metrics.builtin import pii_numbers as checks

Spans = Iterator[tuple[int, int]]

# Digits, spaces and dashes as models and word processors write them; one character for one, so that places stay.
_PLAIN: Final = str.maketrans(
    {chr(0xFF10 + d): str(d) for d in range(10)}
    | dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " ")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\uff0d", "-")
    | {"＋": "+", "＠": "@", "．": ".", "（": "(", "）": ")", "：": ":"}
)


def plain(text: str) -> str:
    """The same text with full-width digits, odd spaces and dashes made plain; nothing moves."""
    return text if text.isascii() else text.translate(_PLAIN)


# --- addresses on the net ------------------------------------------------------------------------------------------------

_LOCAL: Final = re.compile(r"[\w.%+'-]{1,64}\Z")
_DOMAIN: Final = re.compile(
    r"(?:[^\W_][\w-]{0,62}\.){1,8}(?!(?:png|jpe?g|gif|svg|webp|js|ts|css|json|py|md|html?|txt)\b)[^\W\d_]{2,24}(?![\w-])"
)


def emails(text: str) -> Spans:
    """``name@domain.tld``; not a handle (``@user@host``), a file (``logo@2x.png``) or a repository (``git@github.com:``)."""
    at = text.find("@")
    while at >= 0:
        domain = _DOMAIN.match(text, at + 1)
        local = _LOCAL.search(text[max(at - 64, 0) : at]) if domain is not None else None
        if local is not None and domain is not None:
            name = local.group().lstrip(".'-+%")
            start = at - len(name)
            repository = name.lower() == "git" and text[domain.end() : domain.end() + 1] in (":", "/")
            if name and not name.endswith(".") and text[start - 1 : start] not in ("@", "/") and not repository:
                yield start, domain.end()
        at = text.find("@", at + 1)


_IPV4: Final = re.compile(r"(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?![\w-]|\.\d)")
_IPV6: Final = re.compile(
    r"(?<![\w:.])[23][0-9A-Fa-f]{3}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])"
)  # 2000::/3, what is routed
_VERSION: Final = re.compile(
    r"(?:\bv|\bversion|\brelease|\bver\.?|\bbuild|§|\bsection|\bchapter|\bfirmware)[\s:=#]*\Z", re.IGNORECASE
)


def ip_addresses(text: str) -> Spans:
    """IPv4 and IPv6 that may be somebody's: not private, loopback, link-local or multicast ones, and no version numbers."""
    for pattern in (_IPV4, *((_IPV6,) if text.count(":") > 1 else ())):
        for found in pattern.finditer(text):
            try:
                address = ipaddress.ip_address(found.group())
            except ValueError:
                continue
            if any(address in net for net in _INNER if net.version == address.version):
                continue
            if not _VERSION.search(text[max(found.start() - 16, 0) : found.start()]):
                yield found.span()


_INNER: Final = [
    ipaddress.ip_network(net)
    for net in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "224.0.0.0/3",
    )
]

# --- telephones ----------------------------------------------------------------------------------------------------------

# ITU E.164: the country codes that exist.
_CODE: Final = r"(?:1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|2[1-689]\d|3[578]\d|42\d|5[09]\d|6[7-9]\d|8[0578]\d|9[679]\d)"
_E164: Final = re.compile(rf"(?<![\w+])(?<!\d )(?:\+|00){_CODE}(?:[ ./-]{{0,2}}\(?\d{{1,5}}\)?){{1,7}}(?!\d)")
_US: Final = re.compile(
    r"(?<![\w./-])(?<!\d )(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[ .-])\d{3}[ .-]\d{4}(?![\w]|[./-]\d)"
)
_TRUNK: Final = re.compile(
    r"(?<![\w.,/-])(?<!\d )(?!00)(?:\(0\d{1,5}\)|0\d{1,5})(?:[ /-]{1,3}\d{2,8}){1,4}(?![\w]|[.,/-]\d)|(?<![\w.])0\d(?:\.\d\d){4}(?![\w.])"
)
_CALLED: Final = re.compile(
    r"\b(?:tel|telephone|phone|call|mobile|cell|fax|whatsapp|dial|sms|text me|reach me|handy|telefon|telefono|teléfono|téléphone|móvil"
    r"|celular|portable|numer telefonu|телефон)\b[^\d\n]{0,24}?(\(?\d[\d ()./-]{5,18}\d)(?![\w]|[./-]\d)|(?:电话|電話|手机|手機|携帯|전화)[^\d\n]{0,8}(\d[\d -]{5,16}\d)",
    re.IGNORECASE,
)
_CALL_WORDS: Final = (
    "tel", "phone", "call", "mobile", "cell", "fax", "whatsapp", "dial", "sms", "text me", "reach me", "handy", "téléphone", "móvil",
    "celular", "portable", "телефон", "电话", "電話", "手机", "手機", "携帯", "전화",
)  # fmt: skip
_SSN_SHAPE: Final = re.compile(r"\d{3}[ -]\d{2}[ -]\d{4}")
_NO_PHONE: Final = re.compile(
    r"(?:order|invoice|ticket|case|ref|reference|tracking|parcel|isbn|issn|sku|part|serial|model|article|item|account|policy|pages?|id|no|nr|number|#|№"
    r"|bestellung|rechnung|artikel|commande|pedido|factura)[\s.:#=-]*\Z",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    r"(?:19|20)\d\d[-./ ](?:0?[1-9]|1[0-2])[-./ ]|(?:0?[1-9]|[12]\d|3[01])[-./ ](?:0?[1-9]|1[0-2])[-./ ](?:19|20)\d\d\Z"
)


def phones(text: str) -> Spans:
    """International numbers; North American ones by their groups; others with a leading 0 in groups, or after a word such as *call*.
    Not order, invoice and article numbers, dates or amounts."""
    last = 0
    lowered = text.lower()
    spans = [(found.start(), found.end(), 8, 15, False) for found in _E164.finditer(text)]
    spans += [(found.start(), found.end(), 10, 11, True) for found in _US.finditer(text)]
    spans += [(found.start(), found.end(), 9, 12, True) for found in _TRUNK.finditer(text)]
    for found in _CALLED.finditer(text) if any(word in lowered for word in _CALL_WORDS) else ():
        group = 1 if found.group(1) is not None else 2
        spans.append((found.start(group), found.end(group), 7, 15, False))
    for start, end, least, most, careful in sorted(spans):
        if start < last:
            continue
        shown = text[start:end].rstrip(" ./-(")
        digits = sum(map(str.isdigit, shown))
        if not least <= digits <= most or _DATE.match(shown):
            continue
        if careful and (_SSN_SHAPE.fullmatch(shown) or _NO_PHONE.search(text[max(start - 24, 0) : start])):
            continue
        last = start + len(shown)
        yield start, last


# --- money ---------------------------------------------------------------------------------------------------------------

_DIGIT_RUN: Final = re.compile(r"(?<![\w.,])\d{4,19}(?:[ -]\d{2,7}){0,12}(?!\w)")


def credit_cards(text: str) -> Spans:
    """Card numbers with an issuer's beginning and a right check digit, in groups or without."""
    for run in _DIGIT_RUN.finditer(text):
        for start, end in checks.numbers_in_groups(run.group(), checks.is_card, 19):
            yield run.start() + start, run.start() + end


_IBAN_START: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?=[ -]?[A-Za-z0-9])")


def ibans(text: str) -> Spans:
    """Account numbers with their country's length and a right checksum."""
    for found in _IBAN_START.finditer(text):
        length = checks.IBAN_LENGTHS.get(found.group()[:2].upper())
        if length is None:
            continue
        compact, at = "", found.start()
        while at < len(text) and len(compact) < length:
            character = text[at]
            if character.isascii() and character.isalnum():
                compact += character.upper()
            elif character not in " -" or not text[at - 1].isalnum():
                break
            at += 1
        if len(compact) == length and not text[at : at + 1].isalnum() and checks.is_iban(compact):
            yield found.start(), at


# --- numbers of people ---------------------------------------------------------------------------------------------------


def _checked(pattern: str, valid: Callable[[str], bool], flags: int = 0) -> Callable[[str], Spans]:
    compiled = re.compile(pattern, flags)

    def find(text: str) -> Spans:
        for found in compiled.finditer(text):
            if valid(re.sub(r"[ .\-/]", "", found.group()).upper()):
                yield found.span()

    return find


_SSN: Final = re.compile(
    r"(?<![\w.-])\d{3}(?P<gap>[ -])\d{2}(?P=gap)\d{4}(?![\w]|[.-]\d)|(?i:\b(?:ssn|social security)\b[^\d\n]{0,20})(\d{9})(?!\d)"
)


def us_ssns(text: str) -> Spans:
    """``123-45-6789`` in a range that was issued; nine digits in one only after *SSN* or *social security*."""
    for found in _SSN.finditer(text):
        start, end = found.span(2) if found.group(2) else found.span()
        if checks.is_ssn(re.sub(r"[ -]", "", text[start:end])):
            yield start, end


# --- secrets -------------------------------------------------------------------------------------------------------------

_SECRET: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?:[a-z0-9]{1,12}-){0,3}[A-Za-z0-9_-]{20,200}"  # OpenAI, Anthropic, OpenRouter and others
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"
    r"|gh[pousr]_[A-Za-z0-9]{30,100}|github_pat_[A-Za-z0-9_]{22,100}|glpat-[\w-]{20,60}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,200}|AIza[0-9A-Za-z_-]{35}|hf_[A-Za-z0-9]{30,60}|[rsp]k_(?:live|test)_[0-9A-Za-z]{16,120}"
    r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,300}|SG\.[\w-]{16,40}\.[\w-]{30,60}"
    r"|eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{0,2000}"  # a JSON web token
    r")|-----BEGIN (?:[A-Z]{2,12} ){0,3}PRIVATE KEY-----"
    r"|(?<=://)[^\s/:@]{1,100}:[^\s/:@]{3,100}(?=@[\w.-])"  # https://user:password@host
    r"|(?i:\bbearer )[A-Za-z0-9._~+/-]{20,2000}"
)

_HINTS: Final = (
    "sk-", "AKIA", "ASIA", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_", "glpat-", "xox", "AIza", "hf_", "k_live_", "k_test_", "npm_", "pypi-", "SG.", "eyJ", "PRIVATE KEY",
    "://", "earer ", "EARER ",
)  # fmt: skip


def secrets(text: str) -> Spans:
    """API keys by their makers' prefixes, AWS key ids, private keys, JSON web tokens, passwords in addresses. Not placeholders."""
    if not any(hint in text for hint in _HINTS):  # the usual case, at the cost of a few searches in C
        return
    for found in _SECRET.finditer(text):
        shown = found.group()
        if shown.startswith("sk-") and not (any(map(str.isdigit, shown)) and len(set(shown)) > 10):
            continue  # sk-your-api-key-goes-here, sk-xxxxxxxxxxxxxxxxxxxx
        yield found.span()


#: kind → finder, in the order in which overlapping findings win.
DEFAULT: Final[dict[str, Callable[[str], Spans]]] = {
    "secret": secrets,
    "email": emails,
    "iban": ibans,
    "credit_card": credit_cards,
    "us_ssn": us_ssns,
    "ip_address": ip_addresses,
    "es_dni": _checked(
        r"(?<![\w-])(?:\d{8}|[XYZxyz][ -]?\d{7})[ -]?[A-HJ-NP-TV-Za-hj-np-tv-z](?![\w-])", checks.is_dni
    ),
    "it_fiscal_code": _checked(
        r"(?<!\w)[A-Z]{6}[0-9LMNPQRSTUV]{2}[ABCDEHLMPRST][0-9LMNPQRSTUV]{2}[A-Z][0-9LMNPQRSTUV]{3}[A-Z](?!\w)",
        checks.is_codice_fiscale,
    ),
    "br_cpf": _checked(r"(?<![\w.])\d{3}\.\d{3}\.\d{3}-\d{2}(?!\w)", checks.is_cpf),
    "fr_nir": _checked(
        r"(?<!\w)[12] ?\d{2} ?\d{2} ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}(?!\w)", checks.is_nir, re.IGNORECASE
    ),
    "phone": phones,
}
#: Kinds whose check digit lets one in ten or eleven other numbers through: only where they are asked for.
ON_REQUEST: Final[dict[str, Callable[[str], Spans]]] = {
    "nl_bsn": _checked(r"(?<![\w.-])\d{3}[. ]?\d{3}[. ]?\d{3}(?![\w-])", checks.is_bsn),
    "uk_nhs": _checked(r"(?<![\w.-])\d{3}[ -]?\d{3}[ -]?\d{4}(?![\w-])", checks.is_nhs),
    "pl_pesel": _checked(r"(?<![\w.-])\d{11}(?![\w-])", checks.is_pesel),
    "de_steuer_id": _checked(r"(?<![\w.-])\d{2} ?\d{3} ?\d{3} ?\d{3}(?![\w-])", checks.is_steuer_id),
    "in_aadhaar": _checked(r"(?<![\w.-])\d{4}[ -]?\d{4}[ -]?\d{4}(?![\w-])", checks.is_aadhaar),
}
#: A row of at least seven digits and what may divide them: without one, none of the kinds that are numbers is there.
NUMBERS: Final = re.compile(r"\d[\d ./()-]{5,}\d")
WITHOUT_NUMBERS: Final = frozenset({"secret", "email", "it_fiscal_code"})
KINDS: Final = {**DEFAULT, **ON_REQUEST}
