-- Takes a free lock, or finds that the owner has it already: repeating it changes nothing but the token and the expiry.
-- KEYS: the lock; the fence (highest token granted in this hash slot)
-- ARGV: owner; lease in ms
-- Returns the token if granted; otherwise -n, n being the ms that the holder's lease still has, or 0 if it has no end.
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return -math.max(redis.call('PTTL', KEYS[1]), 0)
end
redis.call('HSET', KEYS[1], ARGV[1], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
-- The clock carries the tokens on where the fence was lost with a failover or a flush, the fence where the clock went
-- back. Microseconds since 1970 stay below 2^53, the last whole number that Lua can count to, until the year 2255.
local now = redis.call('TIME')
local token = now[1] * 1000000 + now[2]
local last = redis.call('SET', KEYS[2], token, 'GET')
if last and tonumber(last) >= token then
  token = tonumber(last) + 1
  redis.call('SET', KEYS[2], token)
end
return token
