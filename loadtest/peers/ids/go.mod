module seckill/loadtest/peers/ids

go 1.27.0

toolchain go1.27.4

replace seckill => ../../..

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/google/uuid v1.6.0
	github.com/sony/sonyflake/v2 v2.2.0
	seckill v0.0.0-00010101000000-000000000000
)
