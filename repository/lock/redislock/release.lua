-- Gives a lock back and tells who waits for it. It never touches a lock that is another's.
-- KEYS: the lock
-- ARGV: owner; channel; 1 to publish to the shard channel of a cluster as well
-- Returns 1, or 0 if the lock is not the owner's (any more).
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('PUBLISH', ARGV[2], '0')
if ARGV[3] == '1' then
  redis.pcall('SPUBLISH', ARGV[2], '0') -- unknown before Redis 7
end
return 1
