-- Renews locks, or notes their depth, where the owner still has them: repeating it changes nothing.
-- KEYS: the locks
-- ARGV: for each lock, its owner; its new depth, 0 to leave it; its lease in ms, 0 to leave it
-- Returns for each lock 1, or 0 if it is not the owner's. A lock that fails has its error there.
local answers = {}
for i = 1, #KEYS do
  local lock, owner, depth, lease = KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  answers[i] = redis.pcall('HEXISTS', lock, owner)
  if answers[i] == 1 then
    if depth ~= '0' then
      redis.call('HSET', lock, owner, depth)
    end
    if lease ~= '0' then
      redis.call('PEXPIRE', lock, lease)
    end
  end
end
return answers
