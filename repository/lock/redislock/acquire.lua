-- Takes each lock that is free, or that its owner has already: repeating it changes nothing but tokens and expiries.
-- KEYS: the locks; last, the fence (highest token granted in this hash slot)
-- ARGV: for each lock, its owner and its lease in ms
-- Returns for each lock the token if granted; otherwise -n, n being the ms that the holder's lease still has, or 0 if it
-- has no end. A lock that fails has its error there; it does not concern the others.

-- The clock carries the tokens on where the fence was lost with a failover or a flush, the fence where the clock went
-- back. Microseconds since 1970 stay below 2^53, the last whole number that Lua can count to, until the year 2255.
local locks = #KEYS - 1
local fence = KEYS[#KEYS]
local now = redis.call('TIME')
local token = now[1] * 1000000 + now[2]
local last = tonumber(redis.call('GET', fence) or 0) or 0 -- what is no number is written over
if last >= token then
  token = last + 1
end

-- Nearly always none of them is held, which one EXISTS tells. A lock that comes twice is looked at again: its first turn
-- may have taken it.
local allFree = redis.call('EXISTS', unpack(KEYS, 1, locks)) == 0
local answers, granted, seen = {}, 0, {}
for i = 1, locks do
  local lock, owner, lease = KEYS[i], ARGV[2 * i - 1], ARGV[2 * i]
  local left = -2 -- there is no such key
  if not allFree or seen[lock] then
    left = redis.call('PTTL', lock)
  end
  seen[lock] = true
  local grantable = left == -2 and 1 or redis.pcall('HEXISTS', lock, owner)
  if grantable == 1 then
    redis.call('HSET', lock, owner, '1')
    redis.call('PEXPIRE', lock, lease)
    answers[i] = token + granted
    granted = granted + 1
  elseif grantable == 0 then
    answers[i] = -math.max(left, 0)
  else
    answers[i] = grantable
  end
end
if granted > 0 then
  redis.call('SET', fence, token + granted - 1)
end
return answers
