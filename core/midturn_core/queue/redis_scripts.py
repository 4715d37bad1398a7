"""The Lua scripts of the Redis repository: one per operation, so each is one atomic step.

Every script works on the keys of one context alone, which share a hash tag, so that a cluster
keeps them in one slot. KEYS, for each of them:

====== ======================================================================================
items  hash: uuid -> record
tags   hash: uuid -> JSON of what selection needs: priority, source, held, prompt, metadata;
       ``arrival`` names the enqueue that stored it, ``revision`` the last write
claims hash: uuid -> "owner token deadline": who holds it, by which operation, until when (ms)
done   sorted set: arrivals and claim tokens that are over, by time. An operation that comes a
       second time, because its answer was lost, is recognised by it
tiers  three sorted sets: uuid by position
====== ======================================================================================

Besides, each change is told on the context's channel ``changes``, by the name of the run that made
it. Its name is made of the first key's: a channel is no key, so it needs no slot of a cluster.

Text is never decoded here, so no text can break a script. Scores are doubles: half way between
two neighbours there is room for at least forty moves, then the tier is spaced anew.
"""

from __future__ import annotations

FULL = -1
"""What ``ENQUEUE`` answers where the cap is reached."""
KEY_NAMES = ("items", "tags", "claims", "done", "tier:0", "tier:1", "tier:2")

_COMMON = (
    f"local FULL = {FULL}"
    + """
local items, tags, claims, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local CHANGES = string.gsub(items, 'items$', 'changes')
local GAP, PAGE, REMEMBER = 1024, 200, 600000
local function amount() return redis.call('HLEN', items) - redis.call('HLEN', claims) end
local function tier(priority) return KEYS[5 + priority] end
local function tell(run) redis.call('PUBLISH', CHANGES, run) end
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function tag(uuid)
  local stored = redis.call('HGET', tags, uuid)
  return stored and cjson.decode(stored)
end
local function claim_of(uuid)
  local stored = redis.call('HGET', claims, uuid)
  if not stored then return nil end
  local owner, token, deadline = string.match(stored, '^(%S+) (%S+) (%S+)$')
  return {owner = owner, token = token, deadline = tonumber(deadline)}
end
local function claimed_by(token)
  local found, stored = {}, redis.call('HGETALL', claims)
  for index = 1, #stored, 2 do
    if string.find(stored[index + 1], token, 1, true) then found[#found + 1] = stored[index] end
  end
  return found
end
local function waiting(uuid)
  if redis.call('HEXISTS', claims, uuid) == 1 then return nil end
  return tag(uuid)
end
local function finish(tokens)
  local moment = now()
  for _, token in ipairs(tokens) do redis.call('ZADD', done, moment, token) end
  redis.call('ZREMRANGEBYSCORE', done, '-inf', moment - REMEMBER)
  redis.call('PEXPIRE', done, REMEMBER)
end
local function position(uuid, priority)
  return tonumber(redis.call('ZSCORE', tier(priority), uuid))
end
local function end_of(priority)
  local last = redis.call('ZREVRANGE', tier(priority), 0, 0, 'WITHSCORES')
  return (tonumber(last[2]) or 0) + GAP
end
local function in_order(uuids)
  local places = {}
  for _, uuid in ipairs(uuids) do
    local priority = tag(uuid).priority
    places[uuid] = {priority, position(uuid, priority)}
  end
  table.sort(uuids, function(a, b)
    if places[a][1] ~= places[b][1] then return places[a][1] < places[b][1] end
    return places[a][2] < places[b][2]
  end)
  return uuids
end
local function matches(uuid, want)
  local found = waiting(uuid)
  if not found or found.priority > want.max_priority then return false end
  if want.source and found.source ~= want.source then return false end
  if want.exclude_held and found.held then return false end
  if want.prompts_only and not found.prompt then return false end
  if want.revisions and want.revisions[uuid] ~= found.revision then return false end
  for key, value in pairs(want.metadata) do
    if found.metadata[key] ~= value then return false end
  end
  return true
end
local function select_named(want, limit)
  local found = {}
  for _, uuid in ipairs(want.uuids) do
    if matches(uuid, want) then found[#found + 1] = uuid end
  end
  in_order(found)
  while limit > 0 and #found > limit do table.remove(found) end
  return found
end
local function select(want, limit)
  if want.uuids then return select_named(want, limit) end
  local found = {}
  for priority = 0, want.max_priority do
    local start, page = 0, nil
    repeat
      page = redis.call('ZRANGE', tier(priority), start, start + PAGE - 1)
      for _, uuid in ipairs(page) do
        if matches(uuid, want) then
          found[#found + 1] = uuid
          if #found == limit then return found end
        end
      end
      start = start + PAGE
    until #page < PAGE
  end
  return found
end
local function records(uuids)
  local found = {}
  for index, uuid in ipairs(uuids) do found[index] = redis.call('HGET', items, uuid) end
  return found
end
"""
)

ENQUEUE = (
    _COMMON
    + """
local uuid, record, new_tags, channel, run = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local cap = tonumber(ARGV[6])
local new = cjson.decode(new_tags)
local known = tag(uuid)
if known then return known.arrival == new.arrival and 1 or 0 end
if redis.call('ZSCORE', done, new.arrival) then return 1 end
if cap > 0 and amount() >= cap then return FULL end
redis.call('HSET', items, uuid, record)
redis.call('HSET', tags, uuid, new_tags)
redis.call('ZADD', tier(new.priority), end_of(new.priority), uuid)
redis.call('PUBLISH', channel, run .. ' ' .. record)
tell(run)
return 1
"""
)
"""ARGV: uuid, record, tags, channel, run, cap (0 is none). Answer: 1, 0 or ``FULL``."""

SELECT = (
    _COMMON
    + """
local found = select(cjson.decode(ARGV[1]), tonumber(ARGV[2]))
local answer = {}
for _, uuid in ipairs(found) do
  answer[#answer + 1] = tag(uuid).revision
  answer[#answer + 1] = redis.call('HGET', items, uuid)
end
return answer
"""
)
"""ARGV: selection, limit (0 is none). Answer: revision and record in turns."""

CLAIM = (
    _COMMON
    + """
local owner, token, lease = ARGV[3], ARGV[4], tonumber(ARGV[5])
if redis.call('ZSCORE', done, token) then return {} end
local again = claimed_by(token)
if #again > 0 then return records(in_order(again)) end
local found = select(cjson.decode(ARGV[1]), tonumber(ARGV[2]))
local value = owner .. ' ' .. token .. ' ' .. string.format('%d', now() + lease)
for _, uuid in ipairs(found) do redis.call('HSET', claims, uuid, value) end
return records(found)
"""
)
"""ARGV: selection, limit (0 is none), owner, token, lease in ms. Answer: records."""

CONFIRM = (
    _COMMON
    + """
local owner, gone, over = ARGV[1], {}, {}
for index = 2, #ARGV do
  local uuid = ARGV[index]
  local found, claim = tag(uuid), claim_of(uuid)
  if found and (not claim or claim.owner == owner) then
    redis.call('HDEL', items, uuid)
    redis.call('HDEL', tags, uuid)
    redis.call('HDEL', claims, uuid)
    redis.call('ZREM', tier(found.priority), uuid)
    over[#over + 1] = found.arrival
    if claim then over[#over + 1] = claim.token end
    gone[#gone + 1] = uuid
    gone[#gone + 1] = found.arrival
  end
end
finish(over)
if #gone > 0 then tell(owner) end
return gone
"""
)
"""ARGV: owner, uuids. Answer: uuid and arrival of what is gone now, in turns."""

UNCLAIM = (
    _COMMON
    + """
local owner = ARGV[1]
for index = 2, #ARGV do
  local claim = claim_of(ARGV[index])
  if claim and claim.owner == owner then
    redis.call('HDEL', claims, ARGV[index])
    finish({claim.token})
  end
end
tell(owner)
return 1
"""
)
"""ARGV: owner, uuids."""

ABANDON = (
    _COMMON
    + """
local token = ARGV[1]
finish({token})
for _, uuid in ipairs(claimed_by(token)) do redis.call('HDEL', claims, uuid) end
tell(ARGV[2])
return 1
"""
)
"""ARGV: the token of a claim whose answer never came: it took nothing, now or later; run."""

OWNERS = (
    _COMMON
    + """
local owners, seen = {}, {}
for _, value in ipairs(redis.call('HVALS', claims)) do
  local owner = string.match(value, '^%S+')
  if not seen[owner] then
    seen[owner] = true
    owners[#owners + 1] = owner
  end
end
return owners
"""
)
"""Answer: whose claims there are."""

RECOVER = (
    _COMMON
    + """
local me, dead, moment = ARGV[1], {}, now()
for index = 2, #ARGV do dead[ARGV[index]] = true end
local back, held = {}, redis.call('HKEYS', claims)
for _, uuid in ipairs(held) do
  local claim = claim_of(uuid)
  if claim.owner ~= me and (dead[claim.owner] or claim.deadline < moment) then
    redis.call('HDEL', claims, uuid)
    finish({claim.token})
    back[#back + 1] = uuid
  end
end
if #back > 0 then tell(me) end
return records(in_order(back))
"""
)
"""ARGV: own owner, dead owners. Answer: records of what waits again."""

GET = (
    _COMMON
    + """
return waiting(ARGV[1]) and redis.call('HGET', items, ARGV[1])
"""
)
"""ARGV: uuid. Answer: record or nil."""

REPLACE = (
    _COMMON
    + """
local run, replaced = ARGV[1], 0
for index = 2, #ARGV, 3 do
  local uuid, record, new = ARGV[index], ARGV[index + 1], cjson.decode(ARGV[index + 2])
  local old = waiting(uuid)
  if old then
    new.arrival = old.arrival
    redis.call('HSET', items, uuid, record)
    redis.call('HSET', tags, uuid, cjson.encode(new))
    if old.priority ~= new.priority then
      redis.call('ZREM', tier(old.priority), uuid)
      redis.call('ZADD', tier(new.priority), end_of(new.priority), uuid)
    end
    replaced = replaced + 1
  end
end
if replaced > 0 then tell(run) end
return replaced
"""
)
"""ARGV: run; uuid, record and tags in turns. Answer: how many were waiting."""

MOVE = (
    _COMMON
    + """
local uuid, before, run = ARGV[1], ARGV[2], ARGV[3]
local moved = waiting(uuid)
if not moved then return 0 end
local places = tier(moved.priority)
if before == '' then
  redis.call('ZADD', places, end_of(moved.priority), uuid)
  tell(run)
  return 1
end
local target = waiting(before)
if not target or target.priority ~= moved.priority or uuid == before then return 0 end
local function free()
  local high = position(before, moved.priority)
  local rank = redis.call('ZRANK', places, before)
  if rank == 0 then return high - GAP end
  local low = tonumber(redis.call('ZRANGE', places, rank - 1, rank - 1, 'WITHSCORES')[2])
  local middle = (low + high) / 2
  return middle > low and middle < high and middle or nil
end
local place = free()
if not place then
  for index, other in ipairs(redis.call('ZRANGE', places, 0, -1)) do
    redis.call('ZADD', places, index * GAP, other)
  end
  place = free()
end
redis.call('ZADD', places, place, uuid)
tell(run)
return 1
"""
)
"""ARGV: uuid, the one to stand before it or nothing, run."""

SIZE = (
    _COMMON
    + """
return amount()
"""
)
"""Answer: how many wait."""

FORGET = """
for index = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[index]) == ARGV[index + 1] then
    redis.call('HDEL', KEYS[1], ARGV[index])
  end
end
return 1
"""
"""On the map of all uuids to their contexts. ARGV: uuid and expected value in turns."""
