-- Takes the lock if it is free or the owner already holds it. Repeating it changes only the token and the expiry.
-- KEYS: the lock; the fence, which stores the highest token granted
-- ARGV: owner; lease in ms
-- Returns the token if the lock was granted. Otherwise it returns -n, where n is how many ms the holder's lease still
-- has, or 0 if that lease has no end.
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return -math.max(redis.call('PTTL', KEYS[1]), 0)
end

-- The token is the server's clock in microseconds, and always higher than the last one. So tokens keep rising when a
-- failover or a flush lost the fence (by the clock), and when the clock went back (by the fence). They stay below 2^53, the
-- limit of exact integers in Lua, until the year 2255.
local now = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[2]) or 0) or 0 -- a fence that is not a number is overwritten
local token = math.max(now[1] * 1000000 + now[2], last + 1)

redis.call('HSET', KEYS[1], ARGV[1], '1')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], token)
return token
