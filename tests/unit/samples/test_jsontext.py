"""JSON in attributes, as SDKs let it through."""

import pytest

from spangrade.samples.jsontext import loads, looks_cut, read_items, read_value

HALF = "\ud83d"  # the first half of an emoji, cut by somebody who counts UTF-16 units


@pytest.mark.parametrize("written", [HALF, "\\ud83d"])
def test_half_a_character_is_no_reason_not_to_read(written: str) -> None:
    """Itself, as Python's strings can hold it, or as JSON's escape."""
    text = '{"a": "' + written + '"}'
    assert loads(text) == {"a": HALF}
    assert read_value(text)[0]["a"]
    assert not looks_cut(text)
    assert read_items("[" + text + "]").items == [{"a": HALF}]


def test_text_with_half_a_character_that_is_no_json_stays_text() -> None:
    for text in (HALF, "{" + HALF, "[" + HALF + "]"):
        with pytest.raises(ValueError, match=r"."):
            loads(text)
        assert isinstance(read_value(text)[0], str)
        assert len(read_items(text).items) <= 1
