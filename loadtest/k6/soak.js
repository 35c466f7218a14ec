// Everything at a steady rate for a long time. Most orders are cancelled, so that the sale goes on.
//
//   k6 run -e SECKILL_DATA=$PWD/data loadtest/k6/soak.js
import { steady } from './lib/steady.js';

export const { options, setup, visit, teardown, handleSummary } = steady('soak', (buyer) => buyer.live(buyer.buy()));
export default visit;
