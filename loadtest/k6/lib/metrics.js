import { Counter, Trend } from 'k6/metrics';

// What the buyers saw.
export const answers = new Counter('shop_answers'); // by op and outcome
export const orders = new Counter('shop_orders'); // placed, as far as their buyers know
export const latency = new Trend('shop_place_duration', true); // by class: accepted, refused, other

// What must be nothing.
export const oversold = new Counter('shop_oversold'); // units sold beyond the stock
export const undersold = new Counter('shop_undersold'); // units left though there were buyers for them
export const duplicates = new Counter('shop_duplicates'); // orders beyond their user's limit
export const unexpected = new Counter('shop_unexpected'); // answers that the API does not give, or not to this request
export const unsettled = new Counter('shop_unsettled'); // outcomes that stayed unknown
export const broken = new Counter('shop_broken_invariants'); // checks of the shop's audit that fail
// Buyers add each order that they have, and take it off when they have cancelled it. The end takes off what the shop has
// sold. What is left is an order that one side knows and the other does not.
export const unaccounted = new Counter('shop_unaccounted');

// Arrivals are added before they come, and taken off when they do. What is left are those that k6 itself was too slow to
// begin: where it falls far behind its rate, it does not count them as dropped.
export const missed = new Counter('shop_missed');

export const nothing = { oversold, undersold, duplicates, unexpected, unsettled, broken, unaccounted };

/** The final answers to a request for an order that are not an order. */
export const refusals = ['sold-out', 'already-ordered', 'in-progress', 'sale-not-started', 'sale-ended', 'busy', 'unavailable', 'rate-limited'];

const placeOutcomes = ['placed', 'replayed', ...refusals, 'outcome-unknown', 'timeout', 'broken', 'gateway', 'unexpected'];

/** Names of the answers' series that a summary shows; k6 keeps apart only what a threshold names. */
export const series = [
  ...placeOutcomes.map((outcome) => `shop_answers{op:place,outcome:${outcome}}`),
  ...['pay', 'cancel', 'look'].flatMap((op) => ['done', 'unexpected'].map((outcome) => `shop_answers{op:${op},outcome:${outcome}}`)),
];

/**
 * @param {import('./settings.js').Settings} s
 * @returns {Record<string, string[]>}
 */
export function thresholds(s) {
  /** @type {Record<string, string[]>} */
  const all = {
    dropped_iterations: [`count<=${s.dropped}`],
    shop_missed: [`count<=${s.dropped + Math.ceil(s.arrivals / 1000)}`], // a rate is not met to the last arrival
    'shop_place_duration{class:accepted}': [`p(99)<${s.accepted}`],
    'shop_place_duration{class:refused}': [`p(99)<${s.refused}`],
  };
  for (const metric of Object.values(nothing)) {
    all[metric.name] = ['count==0'];
  }
  for (const name of series) {
    all[name] = ['count>=0'];
  }
  return all;
}
