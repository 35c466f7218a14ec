-- Gives locks back and tells who waits for them. It never touches a lock that is another's.
-- KEYS: the locks
-- ARGV: for each lock, its owner; its channel; 1 to publish to the shard channel of a cluster as well
-- Returns for each lock 1, or 0 if it is not the owner's (any more). A lock that fails has its error there.
local answers = {}
for i = 1, #KEYS do
  local owner, channel, sharded = ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  answers[i] = redis.pcall('HDEL', KEYS[i], owner)
  if answers[i] == 1 then
    redis.pcall('PUBLISH', channel, '0') -- who may not publish has waiters that poll
    if sharded == '1' then
      redis.pcall('SPUBLISH', channel, '0') -- unknown before Redis 7
    end
  end
end
return answers
