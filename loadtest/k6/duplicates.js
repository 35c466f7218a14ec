// Few users who repeat themselves many times at once: each gets one order and no second.
//
//   k6 run -e SECKILL_DATA=$PWD/data loadtest/k6/duplicates.js
import { steady } from './lib/steady.js';

export const { options, setup, visit, teardown, handleSummary } = steady('duplicates', (buyer) => buyer.buy());
export default visit;
