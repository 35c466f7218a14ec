import { broken, duplicates, missed, orders, oversold, thresholds, unaccounted, undersold, unexpected, unsettled } from './metrics.js';
import { spread } from './settings.js';
import { Shop } from './shop.js';

const admin = 1;

/**
 * @typedef {object} Sale what setup hands to everybody
 * @property {string} voucher
 * @property {string} name     of this run, so that its requests' keys are no other's
 */

/**
 * What all scripts have in common.
 * @param {import('./settings.js').Settings} s
 * @param {Record<string, import('k6/options').Scenario>} scenarios
 * @returns {import('k6/options').Options}
 */
export function options(s, scenarios) {
  return {
    scenarios, thresholds: thresholds(s),
    batch: Math.max(1, s.copies), batchPerHost: Math.max(1, s.copies),
    setupTimeout: '60s', teardownTimeout: '300s',
    summaryTrendStats: ['count', 'avg', 'med', 'p(90)', 'p(99)', 'max'],
    systemTags: ['scenario', 'status'], // each more is a series more, and time of the machine that the shop is on
    userAgent: 'k6',
  };
}

/**
 * Puts a voucher on sale that opens in some seconds.
 * @param {import('./settings.js').Settings} s
 * @param {number} opensIn
 * @returns {Sale}
 */
export function open(s, opensIn = -60) {
  const shop = new Shop(s);
  missed.add(s.arrivals);
  const now = Date.now();
  const voucher = shop.must('POST', '/api/v1/admin/vouchers', admin, {
    role: 'admin',
    body: {
      title: `k6: ${s.scenario}`, price_cents: 4900, stock: s.stock, user_limit: 1, pay_seconds: s.paySeconds,
      starts_at: new Date(now + opensIn * 1000).toISOString(), ends_at: new Date(now + 7 * 24 * 3600 * 1000).toISOString(),
    },
  });
  return { voucher: voucher.id, name: `k6-${now.toString(36)}-${Math.random().toString(36).slice(2, 8)}` };
}

/** One buyer comes. */
export class Buyer {
  /**
   * @param {import('./settings.js').Settings} s
   * @param {Sale} sale
   * @param {number} arrival counts the arrivals of this run
   * @param {number} n counts the buyers; after all users the first comes again
   */
  constructor(s, sale, arrival, n = arrival) {
    this.shop = new Shop(s);
    this.settings = s;
    this.sale = sale;
    this.arrival = arrival;
    this.n = n;
    this.user = s.firstUser + n % s.users;
    missed.add(-1);
  }

  /** Asks for a unit and returns the id of the order, or ''. */
  buy() {
    const s = this.settings;
    const copies = s.copies > 1 && spread(this.n, s.copyShare) ? s.copies : 1;
    const key = `${this.sale.name}-${this.arrival}`;
    const all = this.shop.place(this.user, this.sale.voucher, key, copies);
    const ids = new Set(all.map((a) => a.order).filter(Boolean));
    if (ids.size === 0) {
      return '';
    }
    // One request, one order, however often it was sent: a second id, or a second "created", is a second order.
    duplicates.add(Math.max(ids.size, all.filter((a) => a.outcome === 'placed').length) - 1);
    orders.add(1);
    unaccounted.add(1);
    return [...ids][0];
  }

  /**
   * Pays, cancels or keeps the order, by the shares of the scenario, and looks whether the shop shows that.
   * @param {string} order '' for none
   */
  live(order) {
    if (!order) {
      return;
    }
    const { payShare, cancelShare } = this.settings;
    if (spread(this.n, payShare)) {
      this.change(order, 'pay', 'paid');
    } else if (spread(this.n, payShare + cancelShare) && this.change(order, 'cancel', 'closed')) {
      unaccounted.add(-1);
    }
  }

  /**
   * @param {string} order
   * @param {'pay' | 'cancel'} verb
   * @param {string} status that the order has then
   */
  change(order, verb, status) {
    const done = this.shop.change(this.user, order, verb).outcome === 'done';
    const seen = this.shop.look(this.user, order);
    if (done && seen.outcome === 'done' && JSON.parse(String(seen.body)).status !== status) {
      unexpected.add(1, { op: 'look' });
      console.error(`order ${order} should be ${status}: ${seen.body}`);
    }
    return done;
  }
}

/**
 * Compares the answers to the buyers with the shop's audit. It runs in teardown, because k6 checks thresholds after
 * teardown and before handleSummary.
 * @param {import('./settings.js').Settings} s
 * @param {Sale} sale
 */
export function judge(s, sale) {
  const shop = new Shop(s);
  const voucher = shop.must('GET', `/api/v1/vouchers/${sale.voucher}`, admin);
  const sold = voucher.total - voucher.stock;
  oversold.add(Math.max(0, sold - voucher.total));
  // Where nobody cancels, it is known how many units have to be gone; otherwise the audit's books have to balance.
  undersold.add(s.cancelShare > 0 ? 0 : Math.max(0, Math.min(s.stock, s.users, s.arrivals) - sold));
  unaccounted.add(-sold);
  duplicates.add(Math.max(0, sold - s.users) + surplus(shop, s, sale));
  unsettled.add(0);
  unexpected.add(0);

  const audit = shop.must('GET', '/api/v1/admin/audit', admin, { role: 'admin', timeout: 280 });
  oversold.add(audit.totals.oversold);
  duplicates.add(audit.totals.duplicates);
  for (const finding of audit.findings) {
    broken.add(finding.ok ? 0 : 1);
    if (!finding.ok) {
      console.error(`the audit finds invariant ${finding.invariant} broken, ${finding.check}: ${JSON.stringify(finding.rows)}`);
    }
  }
  console.info(`the shop: ${sold} of ${voucher.total} units sold; its audit: ${audit.findings.length} checks, ${audit.ok ? 'all hold' : 'BROKEN'}`);
}

/** How many users are asked for their orders at the end. */
const sample = 100;

/**
 * Orders beyond the limit of one, as some of the users see them themselves.
 * @param {Shop} shop
 * @param {import('./settings.js').Settings} s
 * @param {Sale} sale
 */
function surplus(shop, s, sale) {
  let surplus = 0;
  const step = Math.max(1, Math.floor(s.users / sample));
  for (let n = 0; n < s.users; n += step) {
    const list = shop.must('GET', '/api/v1/orders', s.firstUser + n);
    const live = list.orders.filter((/** @type {any} */ o) => o.voucher_id === sale.voucher && o.status !== 'closed');
    surplus += Math.max(0, live.length - 1);
  }
  return surplus;
}
