// Orders are placed, paid or cancelled, and looked up; what is cancelled is sold again.
//
//   k6 run -e SECKILL_DATA=$PWD/data loadtest/k6/lifecycle.js
import { steady } from './lib/steady.js';

export const { options, setup, visit, teardown, handleSummary } = steady('lifecycle', (buyer) => buyer.live(buyer.buy()));
export default visit;
