// Refusals at full rate: nearly everybody comes too late.
//
//   k6 run -e SECKILL_DATA=$PWD/data loadtest/k6/soldout.js
import exec from 'k6/execution';
import { Buyer, judge, open, options as common } from './lib/sale.js';
import { report } from './lib/report.js';
import { settings } from './lib/settings.js';

const s = settings('soldout');

export const options = common(s, {
  soldout: {
    executor: 'constant-arrival-rate', timeUnit: '1s', rate: s.rate, duration: `${Math.ceil(1000 * s.arrivals / s.rate)}ms`,
    preAllocatedVUs: s.vus, maxVUs: s.vus, gracefulStop: '60s',
  },
});

export const setup = () => open(s);

/** @param {import('./lib/sale.js').Sale} sale */
export default function (sale) {
  new Buyer(s, sale, exec.scenario.iterationInTest).buy();
}

/** @param {import('./lib/sale.js').Sale} sale */
export const teardown = (sale) => judge(s, sale);

export const handleSummary = report(s);
