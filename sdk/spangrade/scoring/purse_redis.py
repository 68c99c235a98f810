"""Judges' money in Redis: shared by all processes of a fleet. Each change is one script, which Redis runs whole."""

import uuid
from collections.abc import Sequence
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.scoring.purse import Ceiling, Held

_KEPT_S: Final = 3 * 86_400
_TIMEOUT_S: Final = 2.0
# KEYS: the reservations' order and amounts, then a hash for each ceiling. A reservation's places are written with it, since an
# hour may end between it and its call. Amounts are integers below 2^53, which Lua's numbers hold.
_EXPIRE: Final = """
local function release(id)
  local held = redis.call('HGET', KEYS[2], id)
  if held then
    local amount, places = string.match(held, '^(%d+) (.*)$')
    for place in string.gmatch(places, '%S+') do redis.call('HINCRBY', place, 'reserved', -tonumber(amount)) end
    redis.call('HDEL', KEYS[2], id)
  end
  redis.call('ZREM', KEYS[1], id)
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])) do release(id) end
local function number(place, field) return tonumber(redis.call('HGET', place, field) or '0') end
"""
_RESERVE: Final = (
    _EXPIRE
    + """
local places = {}
for i = 3, #KEYS do
  if number(KEYS[i], 'spent') + number(KEYS[i], 'reserved') + tonumber(ARGV[3]) > tonumber(ARGV[i + 3]) then return 0 end
  places[#places + 1] = KEYS[i]
end
for _, place in ipairs(places) do
  redis.call('HINCRBY', place, 'reserved', ARGV[3])
  redis.call('EXPIRE', place, ARGV[5])
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[4])
redis.call('HSET', KEYS[2], ARGV[4], ARGV[3] .. ' ' .. table.concat(places, ' '))
return 1
"""
)
_SETTLE: Final = (
    _EXPIRE
    + """
release(ARGV[2])
for i = 3, #KEYS do
  redis.call('HINCRBY', KEYS[i], 'spent', ARGV[3])
  redis.call('EXPIRE', KEYS[i], ARGV[4])
end
return 1
"""
)
_HELD: Final = (
    _EXPIRE
    + """
local found = {}
for i = 3, #KEYS do
  found[#found + 1] = redis.call('HGET', KEYS[i], 'spent') or '0'
  found[#found + 1] = redis.call('HGET', KEYS[i], 'reserved') or '0'
end
return found
"""
)


class RedisPurses:
    """A `PurseStore` in Redis (6 or later), by its address: ``redis://host:6379/0``, ``rediss://...``. Needs the extra
    ``fleet``.

    Raises:
        ConfigError: the extra is missing, or the address is none.
    """

    def __init__(self, url: str, prefix: str = "spangrade:budget") -> None:
        try:
            import redis
        except ImportError:
            raise ConfigError('a budget store in Redis needs the extra: pip install "spangrade[fleet]"') from None
        try:
            self._redis: Any = redis.Redis.from_url(
                url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S, decode_responses=True
            )
        except ValueError as fault:
            raise ConfigError(f"the budget store's address is none that Redis takes: {type(fault).__name__}") from None
        self._prefix = prefix
        self._reserve = self._redis.register_script(_RESERVE)
        self._settle = self._redis.register_script(_SETTLE)
        self._held = self._redis.register_script(_HELD)

    def reserve(self, key: str, ceilings: Sequence[Ceiling], amount: int, now: float, expires: float) -> str | None:
        """See `PurseStore`."""
        found = uuid.uuid4().hex
        # ARGV: now, expires, amount, id, seconds to keep, then the limits: the ceiling of KEYS[i] is ARGV[i + 3].
        limits = [ceiling.limit for ceiling in ceilings]
        done = self._reserve(keys=self._keys(key, ceilings), args=[now, expires, amount, found, _KEPT_S, *limits])
        return found if done else None

    def settle(self, key: str, ceilings: Sequence[Ceiling], reservation: str, spent: int, now: float) -> None:
        """See `PurseStore`."""
        self._settle(keys=self._keys(key, ceilings), args=[now, reservation, spent, _KEPT_S])

    def held(self, key: str, ceilings: Sequence[Ceiling], now: float) -> list[Held]:
        """See `PurseStore`."""
        found = [int(value) for value in self._held(keys=self._keys(key, ceilings), args=[now])]
        return [Held(found[i], found[i + 1]) for i in range(0, len(found), 2)]

    def close(self) -> None:
        """Close this process's connections; the next use opens others."""
        self._redis.close()

    def _keys(self, key: str, ceilings: Sequence[Ceiling]) -> list[str]:
        # One hash tag, so that a cluster keeps a judge's keys together. No blanks: the places are parted by them.
        of = f"{self._prefix}:{{{key.encode().hex()}}}"
        return [f"{of}:order", f"{of}:held", *(f"{of}:{ceiling.kind}:{ceiling.start}" for ceiling in ceilings)]
