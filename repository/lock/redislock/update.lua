-- Updates a lock: renews its lease, stores its depth, or both, if the owner still holds the lock. Repeating it changes nothing.
-- KEYS: the lock
-- ARGV: owner; new depth, or 0 to keep it; lease in ms, or 0 to keep it
-- Returns 1, or 0 if the owner does not hold the lock.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if ARGV[2] ~= '0' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
if ARGV[3] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return 1
