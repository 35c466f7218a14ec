// Orders are placed, paid or cancelled, and looked up; what is cancelled is sold again.
//
//   k6 run -e SECKILL_DATA=$PWD/data loadtest/k6/lifecycle.js
import exec from 'k6/execution';
import { Buyer, judge, open, options as common } from './lib/sale.js';
import { report } from './lib/report.js';
import { settings } from './lib/settings.js';

const s = settings('lifecycle');

export const options = common(s, {
  lifecycle: {
    executor: 'constant-arrival-rate', timeUnit: '1s', rate: s.rate, duration: `${Math.ceil(1000 * s.arrivals / s.rate)}ms`,
    preAllocatedVUs: s.vus, maxVUs: s.vus, gracefulStop: '60s',
  },
});

export const setup = () => open(s);

/** @param {import('./lib/sale.js').Sale} sale */
export default function (sale) {
  const buyer = new Buyer(s, sale, exec.scenario.iterationInTest);
  const order = buyer.buy();
  if (order) {
    buyer.live(order);
  }
}

/** @param {import('./lib/sale.js').Sale} sale */
export const teardown = (sale) => judge(s, sale);

export const handleSummary = report(s);
