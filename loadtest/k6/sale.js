// Many users for few units. Some come before the sale opens and come again later. At the opening, buyers come at the full
// rate for two seconds, then at half of it. A share of them sends each request several times at once.
//
//   k6 run -e SECKILL_DATA=$PWD/data loadtest/k6/sale.js
import exec from 'k6/execution';
import { Buyer, judge, open, options as common } from './lib/sale.js';
import { report } from './lib/report.js';
import { settings } from './lib/settings.js';

const s = settings('sale');

// The shape of the load, in seconds and arrivals a second.
const burst = Math.min(2, s.arrivals / s.rate);
const [first, beforeOpening, steady] = [s.rate / 10, s.rate / 2, s.rate / 2].map(Math.ceil);
const tooEarly = Math.floor(s.early * (first + beforeOpening) / 2);
const rest = Math.max(0, s.arrivals - s.rate * burst) / steady;

export const options = common(s, {
  sale: {
    executor: 'ramping-arrival-rate', timeUnit: '1s', startRate: first,
    preAllocatedVUs: s.vus, maxVUs: s.vus, gracefulStop: '60s',
    stages: [
      { duration: `${Math.round(1000 * s.early)}ms`, target: beforeOpening },
      { duration: '0s', target: s.rate }, // the sale opens
      { duration: `${burst}s`, target: s.rate },
      { duration: '0s', target: steady },
      // Half a second more, so that rounding keeps nobody from coming.
      { duration: `${Math.ceil(1000 * rest) + 500}ms`, target: steady },
    ],
  },
});

export const setup = () => open(s, s.early);

/** @param {import('./lib/sale.js').Sale} sale */
export default function (sale) {
  const n = exec.scenario.iterationInTest;
  new Buyer(s, sale, n, n < tooEarly ? n : n - tooEarly).buy();
}

/** @param {import('./lib/sale.js').Sale} sale */
export const teardown = (sale) => judge(s, sale);

export const handleSummary = report(s);
