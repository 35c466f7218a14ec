-- Renews a lock, or notes its depth, if the owner still has it: repeating it changes nothing.
-- KEYS: the lock
-- ARGV: owner; new depth, 0 to leave it; lease in ms, 0 to leave it
-- Returns 1, or 0 if the lock is not the owner's.
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
