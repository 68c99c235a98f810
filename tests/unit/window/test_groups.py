"""The groups behind the window: what they hold adds up, whatever became of a group."""

from hypothesis import given
from hypothesis import strategies as st

from spangrade.model.span import SpanData
from spangrade.samples.groups import MAX_BYTES, MAX_PARTS, Group, Groups, Top
from spangrade.samples.reading import Call, Reading


def call(number: int, size: int = 100) -> Call:
    span = SpanData(1, number, None, "s", 0, number, {"input.value": "x" * size})
    return Call(span, Reading("test", kind="llm"))


def held_bytes(groups: Groups[int]) -> int:
    return sum(group.bytes for _, group in groups.items())


STEPS = st.tuples(st.sampled_from(["part", "keep", "clear", "drop", "aside"]), st.integers(0, 3))


@given(st.lists(STEPS, max_size=40))
def test_the_bytes_are_those_of_the_groups_that_are_here(steps: list[tuple[str, int]]) -> None:
    groups: Groups[int] = Groups()
    gone: list[Group[int]] = []
    for number, (step, at) in enumerate(steps, 1):
        key = (at, 0)
        group = groups.at(key, 0.0)
        if step == "part":
            groups.add_part(group, call(number))
            group.tops.append(Top(call(number), number, 0.0))
        elif step == "keep":
            groups.keep_parts(group, group.parts[::2])
        elif step == "clear":
            groups.keep_parts(group)
        elif step == "drop":
            dropped = groups.drop(key)
            assert dropped is not None
            gone.append(dropped)
        else:
            groups.put_aside(key)
            gone += [aside for _, aside in groups.aside()]
        for one in gone:  # what is decided of a group that has left is not here any more
            groups.keep_parts(one, one.parts[1:])
        assert groups.bytes == held_bytes(groups)
        assert all(bool(group.parts) is (group.bytes > 0) for _, group in groups.items())


def test_the_parts_of_the_oldest_groups_go_first_and_those_of_one_group_are_bounded() -> None:
    groups: Groups[int] = Groups()
    for number in range(40):
        groups.add_part(groups.at((number, 0), 0.0), call(number, MAX_BYTES // 10))
    assert groups.bytes <= MAX_BYTES
    kept = [key[0] for key, group in groups.items() if group.parts]
    assert kept == list(range(40 - len(kept), 40))
    assert len(groups) == 40
    group = groups.at((99, 0), 0.0)
    for number in range(MAX_PARTS + 5):
        groups.add_part(group, call(number))
    assert [part.span.span_id for part in group.parts] == list(range(5, MAX_PARTS + 5))
