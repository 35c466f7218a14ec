-- KEYS[1] counter. ARGV[1] how many numbers to take, ARGV[2] the floor that the counter has to have reached.
-- Returns {"ok", last number taken} or {"lost", what the counter shows}. Numbers are compared and returned as text,
-- since a Lua number is a double and 63 bits do not fit in it.
local function below(a, b) return #a < #b or (#a == #b and a < b) end

local now = redis.call('GET', KEYS[1]) or ''
if now == '' and ARGV[2] == '0' then
  now = '0' -- nothing was ever given away
end
if now == '' or below(now, ARGV[2]) then
  return {'lost', now}
end
redis.call('INCRBY', KEYS[1], ARGV[1])
return {'ok', redis.call('GET', KEYS[1])}
