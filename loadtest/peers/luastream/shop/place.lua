-- Sells one unit of a voucher to a user, or says why not. Redis runs nothing else meanwhile.
-- KEYS  units left, set of buyers, stream of orders
-- ARGV  voucher, user, order
-- 0: sold; 1: sold out; 2: the user has bought already; 3: this Redis does not know the voucher
local stock = redis.call('GET', KEYS[1])
if not stock then
  return 3
end
if redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1 then
  return 2
end
if tonumber(stock) <= 0 then
  return 1
end
redis.call('DECR', KEYS[1])
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('XADD', KEYS[3], '*', 'v', ARGV[1], 'u', ARGV[2], 'o', ARGV[3])
return 0
