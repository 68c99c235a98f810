"""What is said of media in place of them, in every spelling (C044): type and size where known, never an address or content."""

import base64
from typing import Any

import pytest

from spangrade.samples import media
from spangrade.samples.turns import read_message

DATA = base64.b64encode(b"\x89PNG\r\n").decode()
URL = f"data:image/png;base64,{DATA}"
SECRET = "https://img.example/cat.png?signature=secret"


def said(*parts: Any) -> str | None:
    (turn,) = read_message({"role": "user", "content": [{"type": "text", "text": "What?"}, *parts]}, "user")
    assert turn.text is not None
    return turn.text.removeprefix("What?\n")


@pytest.mark.parametrize(
    ("part", "mark"),
    [
        ({"type": "blob", "modality": "image", "mime_type": "image/png", "content": DATA}, "[image: image/png, 6 bytes]"),
        ({"type": "blob", "mime_type": "audio/wav", "content": "AAAA"}, "[audio: audio/wav, 3 bytes]"),
        ({"type": "uri", "modality": "image", "mime_type": "image/png", "uri": SECRET}, "[image: image/png, by URL]"),
        ({"type": "file", "modality": "document", "file_id": "f1"}, "[document: by id]"),
        ({"type": "image_url", "image_url": {"url": URL}}, "[image: image/png, 6 bytes]"),
        ({"type": "image_url", "image_url": {"url": SECRET}}, "[image: by URL]"),
        ({"type": "input_image", "image_url": URL}, "[image: image/png, 6 bytes]"),
        ({"type": "input_audio", "input_audio": {"data": DATA, "format": "wav"}}, "[audio: audio/wav, 6 bytes]"),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}},
         "[document: application/pdf, 6 bytes]"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": DATA}},
         "[image: image/jpeg, 6 bytes]"),
        ({"type": "document", "source": {"type": "url", "url": SECRET}}, "[document: by URL]"),
        ({"inlineData": {"mimeType": "image/png", "data": DATA}}, "[image: image/png, 6 bytes]"),
        ({"fileData": {"mimeType": "video/mp4", "fileUri": "gs://bucket/v.mp4"}}, "[video: video/mp4, by URL]"),
        ({"type": "image", "image": b"\x89PNG\r\n", "mediaType": "image/png"}, "[image: image/png, 6 bytes]"),
        ({"type": "image", "image.image.url": URL}, "[image: image/png, 6 bytes]"),
        ({"type": "image"}, "[image]"),
        ({"type": "image", "image": "a cat on a mat"}, "[image]"),
        ({"type": "audio", "transcript": "a dog"}, "[audio]\na dog"),
        ({"type": "image", "image_url": {"url": 5}, "source": [], "mime_type": {}}, "[image]"),
    ],
)  # fmt: skip
def test_each_spelling_gives_type_and_size(part: Any, mark: str) -> None:
    assert said(part) == mark


def test_neighbours_of_one_kind_are_one_mark_with_what_each_says_once() -> None:
    blob = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": DATA}
    uri = {"type": "uri", "modality": "image", "uri": SECRET}
    assert said(blob, uri) == "[image x2: image/png, 6 bytes; by URL]"
    assert said(*[uri] * 9) == "[image x9: by URL]"
    assert said(blob, {"type": "text", "text": "and"}, uri) == "[image: image/png, 6 bytes]\nand\n[image: by URL]"
    many = [{**blob, "content": base64.b64encode(b"x" * n).decode()} for n in (3, 6, 9, 12, 15, 18)]
    assert (
        said(*many)
        == "[image x6: image/png, 3 bytes; image/png, 6 bytes; image/png, 9 bytes; image/png, 12 bytes; ...]"
    )


def test_long_content_is_named_before_and_the_mark_has_its_size_and_hash() -> None:
    """What `media` has put in its place."""
    raw = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100
    for held in (base64.b64encode(raw).decode(), f"data:image/png;base64,{base64.b64encode(raw).decode()}"):
        named = media.named({"k": held})["k"]
        mark = said({"type": "image", "image": named, "mediaType": "image/png"})
        assert mark is not None
        assert mark.startswith(f"[image: image/png, {len(raw)} bytes, sha256=")
        assert len(mark) < 80


def test_a_tool_result_may_be_a_picture() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "image", "source": {"media_type": "image/png", "data": DATA}}]}  # fmt: skip
    (turn,) = read_message({"role": "user", "content": [result]}, "user")
    assert (turn.role, turn.text) == ("tool", "[image: image/png, 6 bytes]")


def test_the_work_does_not_grow_with_the_content() -> None:
    """A megabyte of base64 is looked at by its ends: a string that counts how it is read."""

    class Counted(str):
        read = 0

        def __getitem__(self, key: Any) -> str:
            found = super().__getitem__(key)
            Counted.read += len(found)
            return found

    said({"type": "image", "image": Counted("A" * 4_000_000)})
    assert Counted.read < 10_000
