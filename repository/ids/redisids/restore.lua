-- KEYS[1] counter. ARGV[1] floor. Raises the counter to the floor if it is missing or below, and returns it as text.
local function below(a, b) return #a < #b or (#a == #b and a < b) end

local now = redis.call('GET', KEYS[1])
if not now or below(now, ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1])
  return ARGV[1]
end
return now
