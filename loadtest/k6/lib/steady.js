import exec from 'k6/execution';
import { report } from './report.js';
import { Buyer, judge, open, options } from './sale.js';
import { settings } from './settings.js';

/**
 * What a script exports whose buyers come at a steady rate.
 * @param {string} scenario
 * @param {(buyer: Buyer) => void} visit what each of them does
 */
export function steady(scenario, visit) {
  const s = settings(scenario);
  return {
    options: options(s, {
      [scenario]: {
        executor: 'constant-arrival-rate', timeUnit: '1s', rate: s.rate, duration: `${Math.ceil(1000 * s.arrivals / s.rate)}ms`,
        preAllocatedVUs: s.vus, maxVUs: s.vus, gracefulStop: '60s',
      },
    }),
    setup: () => open(s),
    visit: (/** @type {import('./sale.js').Sale} */ sale) => visit(new Buyer(s, sale, exec.scenario.iterationInTest)),
    teardown: (/** @type {import('./sale.js').Sale} */ sale) => judge(s, sale),
    handleSummary: report(s),
  };
}
