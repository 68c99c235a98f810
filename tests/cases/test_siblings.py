"""C016: coroutines that are made first and awaited together are siblings, whatever awaits them; also where one fails."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.cases.conftest import Product

import spangrade as sg
from spangrade import semconv as s


@sg.trace
async def tool(n: int, gate: asyncio.Event) -> int:
    if n == 2:
        gate.set()
    await gate.wait()
    return n


async def by_gather(pending: list[Any]) -> list[int]:
    return list(await asyncio.gather(*pending))


async def by_task_group(pending: list[Any]) -> list[int]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in pending]
    return [task.result() for task in tasks]


async def by_as_completed(pending: list[Any]) -> list[int]:
    return [await one for one in asyncio.as_completed(pending)]


async def by_wait(pending: list[Any]) -> list[int]:
    done, _ = await asyncio.wait([asyncio.ensure_future(one) for one in pending])
    return [task.result() for task in done]


async def by_shield(pending: list[Any]) -> list[int]:
    return list(await asyncio.gather(*(asyncio.shield(one) for one in pending)))


@pytest.mark.parametrize("how", [by_gather, by_task_group, by_as_completed, by_wait, by_shield])
def test_c016_awaited_together_they_are_siblings(
    how: Callable[[list[Any]], Awaitable[list[int]]], product: Product, parent_of: Callable[[Any], int | None]
) -> None:
    """Each waits for the last one, so that all of them run at once."""

    @sg.trace
    async def agent() -> list[int]:
        gate = asyncio.Event()
        return sorted(await how([tool(n, gate) for n in range(3)]))

    assert asyncio.run(agent()) == [0, 1, 2]
    top, tools = product.only("agent"), product.named("tool")
    assert [parent_of(span) for span in tools] == [top.context.span_id] * 3
    assert len(product.samples) == 1


def test_c016_where_one_fails_the_others_end_once_too(product: Product, parent_of: Callable[[Any], int | None]) -> None:
    @sg.trace
    async def breaks(gate: asyncio.Event) -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    @sg.trace
    async def agent() -> None:
        gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for n in (0, 1):
                group.create_task(tool(n, gate))
            group.create_task(breaks(gate))

    with pytest.raises(ExceptionGroup):
        asyncio.run(agent())
    top = product.only("agent")
    ends = {
        (span.name.rpartition(".")[2], (span.attributes or {}).get(s.ENDED), span.status.status_code.name)
        for span in product.spans
    }
    assert ends == {("tool", "cancelled", "UNSET"), ("breaks", None, "ERROR"), ("agent", None, "ERROR")}
    assert [parent_of(span) for span in [*product.named("tool"), *product.named("breaks")]] == [top.context.span_id] * 3
