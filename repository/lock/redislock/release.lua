-- Releases the lock and tells the waiters. It never touches a lock of another owner.
-- KEYS: the lock
-- ARGV: owner; channel; 1 to publish to the shard channel of a cluster as well
-- Returns 1, or 0 if the owner does not hold the lock.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.pcall('PUBLISH', ARGV[2], '0') -- without the permission to publish, waiters poll
if ARGV[3] == '1' then
  redis.pcall('SPUBLISH', ARGV[2], '0') -- unknown before Redis 7
end
return 1
