// Refusals at full rate: nearly everybody comes too late.
//
//   k6 run -e SECKILL_DATA=$PWD/data loadtest/k6/soldout.js
import { steady } from './lib/steady.js';

export const { options, setup, visit, teardown, handleSummary } = steady('soldout', (buyer) => buyer.buy());
export default visit;
