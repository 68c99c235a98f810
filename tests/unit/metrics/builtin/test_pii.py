"""`pii`: what is found, what only looks like it, and that nothing found is ever said."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade.errors import ConfigError
from spangrade.metrics.builtin import pii_numbers
from spangrade.metrics.builtin.pii import find_pii, pii
from spangrade.metrics.builtin.pii_patterns import DEFAULT, KINDS
from spangrade.model.sample import Sample
from spangrade.model.score import Graded, Skip

Grade = Callable[..., Graded]

FOUND = {
    "john.doe@example.com": "email",
    "Mail: o'brien+x@mail.co.uk.": "email",
    "müller@firma.de": "email",
    "<jane@acme.io>": "email",
    "+1 415 555 0100": "phone",
    "Call (555) 123-4567 now": "phone",
    "555-123-4567": "phone",
    "My number is +1-800-555-0199.": "phone",
    "+44 20 7946 0958": "phone",
    "020 7946 0958": "phone",
    "+49 (0)30 1234567": "phone",
    "+353 1 679 9000": "phone",
    "0033 1 42 68 53 00": "phone",
    "tel:+14155552671": "phone",
    "(030) 1234567": "phone",
    "030/1234567": "phone",
    "01 23 45 67 89": "phone",
    "01.23.45.67.89": "phone",
    "call 13812345678": "phone",
    "电话：13812345678": "phone",
    "4111 1111 1111 1111": "credit_card",
    "4111-1111-1111-1111 12/25": "credit_card",
    "3782 822463 10005": "credit_card",
    "2024 5555 5555 5555 4444": "credit_card",
    "card 5555555555554444.": "credit_card",
    "４１１１ １１１１ １１１１ １１１１": "credit_card",
    "4111\u00a01111\u00a01111\u00a01111": "credit_card",
    "DE89 3704 0044 0532 0130 00": "iban",
    "GB82WEST12345698765432": "iban",
    "gb82 west 1234 5698 7654 32 is mine": "iban",
    "123-45-6789": "us_ssn",
    "SSN: 123456789": "us_ssn",
    "8.8.8.8": "ip_address",
    "203.0.113.7": "ip_address",
    "2001:4860:4860::8888": "ip_address",
    "12345678Z": "es_dni",
    "X1234567L": "es_dni",
    "RSSMRA85T10A562S": "it_fiscal_code",
    "529.982.247-25": "br_cpf",
    "1 84 12 76 451 089 46": "fr_nir",
    "sk-proj-abc123DEF456ghi789JKL012": "secret",
    "sk-ant-api03-AbCdEf1234567890abcdEFGH": "secret",
    "AKIAIOSFODNN7EXAMPLE": "secret",
    "ghp_" + "a1B2" * 9: "secret",
    "xoxb-123456789012-abcdefGHIJ": "secret",
    "AIza" + "Sy0a1B2c3D4" * 3 + "xy": "secret",
    "-----BEGIN RSA PRIVATE KEY-----": "secret",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_def": "secret",
    "postgres://bob:hunter22@db.example.com/x": "secret",
    "Authorization: Bearer abcdef0123456789abcdef": "secret",
}
NOT_FOUND = [
    "order 123-456-7890", "Order no. 555-123-4567", "Invoice: 030 1234567", "2024-01-05 10:00", "01-02-2023", "05.06.2024", "v1.2.3.4",
    "version 10.20.30.40", "§ 1.2.3.4", "192.168.1.1", "10.0.0.1", "127.0.0.1", "::1", "fe80::1", "std::vector", "12:30:45",
    "1,234,567,890", "1234567890123", "4111111111111112", "0000 0000 0000 0000", "9999 9999 9999 9999", "000-12-3456", "666-12-3456",
    "900-12-3456", "123-00-6789", "078-05-1120", "123456789", "ISBN 978-3-16-148410-0", "logo@2x.png", "@user@mastodon.social",
    "git@github.com:org/repo", "a@b", "user@localhost", "12345678A", "DE89 3704 0044 0532 0130 01", "XX89 3704 0044 0532 0130 00",
    "sk-your-api-key-goes-here-please", "sk-xxxxxxxxxxxxxxxxxxxxxxxx", "3.14159265358979", "1.000.000,00 €", "from 2010 to 2020",
    "timestamps 1700000000 and 1700000001", "uuid 123e4567-e89b-12d3-a456-426614174000", "tracking 1Z999AA10123456784",
    "call 2024-05-06", "The 2023-2024 season had 82 games; 10-20-30", "call me in 2024", "0x1F4 0xFF", "Pages 200-300-4000", "It costs +5 10 15 20 25 30",
    "pi is 3.1415 9265 3589 7932", "529.982.247-26", "RSSMRA85T10A562T", "https://example.com:8080/path", "The answer is 42.",
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), FOUND.items())
def test_each_kind_is_found_once_as_what_it_is(grade: Grade, text: str, kind: str) -> None:
    assert [found for found, _, _ in find_pii(text)] == [kind]
    score = grade(pii(), output=f"Here: {text}")
    assert (score.value, score.passed) == (1, False)
    assert dict(score.metadata["kinds"]) == {kind: 1}


@pytest.mark.parametrize("text", NOT_FOUND)
def test_what_only_looks_like_it_is_not_found(grade: Grade, text: str) -> None:
    assert list(find_pii(text)) == []
    assert grade(pii(), output=text).passed is True


@pytest.mark.parametrize("text", FOUND)
def test_what_was_found_is_never_said(grade: Grade, text: str) -> None:
    """Not in the explanation, not in the metadata, not in part."""
    score = grade(pii(), output=f"Here: {text}")
    said = f"{score.explanation} {dict(score.metadata)}"
    pieces = [piece for piece in text.replace("/", " ").replace("-", " ").replace("@", " ").split() if len(piece) > 3]
    assert not [piece for piece in pieces if piece in said and piece.lower() not in ("call", "mail:", "card", "here")]
    assert "characters: " in said


def test_the_explanation_counts_kinds_and_says_where(grade: Grade) -> None:
    score = grade(pii(), output="a@b.io and c@d.io, 4111 1111 1111 1111")
    assert (
        score.explanation == "2 email, 1 credit_card (characters: email at 0-6, email at 11-17, credit_card at 19-38)"
    )
    assert score.value == 3


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("nl_bsn", "111222333", "111222334"),
        ("uk_nhs", "943 476 5919", "943 476 5918"),
        ("pl_pesel", "44051401359", "44051401358"),
        ("de_steuer_id", "86 095 742 719", "86 095 742 718"),
        ("in_aadhaar", "2341 2341 2346", "2341 2341 2345"),
    ],
)
def test_kinds_with_weak_check_digits_are_looked_for_on_request(kind: str, right: str, wrong: str) -> None:
    assert kind not in DEFAULT
    assert [found for found, _, _ in find_pii(right, (kind,))] == [kind]
    assert list(find_pii(wrong, (kind,))) == []


def test_kinds_can_be_chosen_added_and_left_out(grade: Grade) -> None:
    text = "a@b.io, 8.8.8.8, 111222333"
    assert grade(pii(kinds=["email"]), output=text).value == 1
    assert grade(pii(exclude=["ip_address"]), output=text).value == 1
    assert grade(pii(also=["nl_bsn"]), output=text).value == 3
    assert grade(pii(threshold=2), output=text).passed is True


def test_own_addresses_and_what_was_given_do_not_count(grade: Grade) -> None:
    text = "Write to Support@Acme.com or bob@acme.com or eve@evil.example"
    assert grade(pii(allow=["support@acme.com"]), output=text).value == 2
    assert grade(pii(allow=["@acme.com"]), output=text).value == 1
    fields = {"input": "I am BOB@acme.com", "documents": ["eve@evil.example"]}
    assert grade(pii(known_from=["input"]), output=text, **fields).value == 2
    assert grade(pii(known_from=["input", "documents"]), output=text, **fields).value == 1


def test_other_fields_and_structured_values_are_looked_at(grade: Grade) -> None:
    assert grade(pii(), output={"contact": {"mail": "a@b.io"}}).value == 1
    score = grade(pii(fields=["input", "output"]), input="a@b.io", output="8.8.8.8")
    assert "email at 0-6 of input" in (score.explanation or "")
    with pytest.raises(Skip, match="output missing"):
        grade(pii(), input="a@b.io")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kinds": ["emial"]}, "kinds holds 'emial', which is not one of secret, email"),
        ({"kinds": ["person"]}, r"give ner=\['person'\]"),
        ({"exclude": list(DEFAULT)}, "nothing is left"),
        ({"fields": []}, "fields is empty"),
        ({"known_from": ["question"]}, "field 'question'"),
        ({"ner": ["animal"]}, "ner holds 'animal'"),
        ({"allow": [""]}, "allow holds ''"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        pii(**options)


def test_names_without_the_extra_are_skipped_with_the_way_out(monkeypatch: pytest.MonkeyPatch, grade: Grade) -> None:
    from spangrade.metrics.builtin import pii_names

    monkeypatch.setattr(pii_names, "_model", None)
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(Skip, match=r'pip install "spangrade\[pii\]"'):
        grade(pii(ner=True), output="Ada Lovelace lived in London.")


@pytest.mark.parametrize(
    "unit",
    [
        "1 ",
        "@",
        "a@",
        "a.b@",
        "+1",
        "DE89",
        "0 ",
        "eyJ",
        ":",
        "1:",
        "-",
        "a",
        "bearer ",
        "(0",
        "tel 0",
        "1.1.1.1.",
        "sk-",
        "://a:",
        "4111 1111 1111 1111 ",
    ],
)
def test_hostile_repetition_ends(unit: str) -> None:
    text = unit * (60_000 // len(unit))
    list(find_pii(text, tuple(KINDS)))


@given(st.text(alphabet="0123456789 -./()+@abzDE:XYZ", max_size=120))
def test_findings_are_in_order_inside_the_text_and_do_not_overlap(text: str) -> None:
    found = list(find_pii(text, tuple(KINDS)))
    ends = [0]
    for kind, start, end in found:
        assert kind in KINDS
        assert ends[-1] <= start < end <= len(text)
        ends.append(end)


@given(st.integers(0, 10**15 - 1))
def test_a_changed_digit_never_passes_luhn(number: int) -> None:
    digits = f"{number:015d}"
    right = next(digits + str(check) for check in range(10) if pii_numbers.luhn(digits + str(check)))
    for place in range(16):
        other = right[:place] + str((int(right[place]) + 1) % 10) + right[place + 1 :]
        assert not pii_numbers.luhn(other)


def test_the_identity_changes_with_what_is_looked_for() -> None:
    keys = {pii().info.key, pii(kinds=["email"]).info.key, pii(ner=True).info.key, pii(allow=["@a.io"]).info.key}
    assert len(keys) == 4
    assert pii(threshold=3).info.key == pii().info.key
    verdict: Any = pii().evaluate(Sample(output="x"))
    assert verdict.scores[0].explanation == "nothing found"
