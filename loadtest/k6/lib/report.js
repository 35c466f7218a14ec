import { nothing, series } from './metrics.js';
import { page } from './page.js';

/** @typedef {ReturnType<typeof summarize>} Result */

/**
 * A handleSummary that prints the result and writes it as JSON and as a page.
 * @param {import('./settings.js').Settings} s
 */
export function report(s) {
  return (/** @type {any} */ data) => {
    const result = summarize(s, data);
    return {
      stdout: text(result),
      [`${s.report}.json`]: `${JSON.stringify(result, null, 2)}\n`,
      [`${s.report}.html`]: page(result),
    };
  };
}

/**
 * The result of a run, for programs. Each of the defects must be 0; latencies are in milliseconds.
 * @param {import('./settings.js').Settings} s
 * @param {any} data
 */
function summarize(s, data) {
  /** @type {(name: string) => any} */
  const values = (name) => data.metrics[name]?.values ?? {};
  const thresholds = Object.entries(data.metrics).flatMap(([metric, m]) => Object.entries(/** @type {any} */ (m).thresholds ?? {})
    .filter(([condition]) => condition !== 'count>=0') // only there to keep a series apart
    .map(([condition, t]) => ({ metric, condition, ok: t.ok }))).sort((a, b) => a.metric < b.metric ? -1 : 1);
  const { key: _, ...settings } = s; // a secret
  return {
    scenario: s.scenario,
    ok: thresholds.every((t) => t.ok),
    seconds: data.state.testRunDurationMs / 1000,
    arrivals: values('iterations').count ?? 0,
    dropped: values('dropped_iterations').count ?? 0,
    requests: values('http_reqs').count ?? 0,
    orders: values('shop_orders').count ?? 0,
    defects: Object.fromEntries(Object.entries(nothing).map(([name, metric]) => [name, values(metric.name).count ?? 0])),
    answers: series.map((name) => {
      const [, op, outcome] = /** @type {RegExpMatchArray} */ (name.match(/op:(\S+),outcome:(\S+)}/));
      return { op, outcome, count: values(name).count ?? 0 };
    }).filter((a) => a.count > 0).sort((a, b) => b.count - a.count),
    latency: Object.fromEntries(['accepted', 'refused'].map((kind) => [kind, values(`shop_place_duration{class:${kind}}`)])),
    thresholds, settings,
  };
}

/** @param {number} n */
export const grouped = (n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ',');

/** @param {number | undefined} ms */
export const millis = (ms) => ms === undefined ? '–' : `${ms < 10 ? ms.toFixed(2) : ms < 100 ? ms.toFixed(1) : grouped(ms)} ms`;

/**
 * @param {Result} r
 * @returns {string} for a terminal
 */
function text(r) {
  const lines = [
    '',
    `${r.scenario}: ${grouped(r.requests)} requests by ${grouped(r.arrivals)} arrivals in ${r.seconds.toFixed(1)} s; ${grouped(r.orders)} orders; ${grouped(r.dropped)} dropped: ${r.ok ? 'nothing wrong' : 'SOMETHING IS WRONG'}.`,
    '',
    `  ${Object.entries(r.defects).map(([name, n]) => `${n} ${name}`).join(', ')}`,
    '',
    ...r.answers.map((a) => `  ${a.op.padEnd(8)}${a.outcome.padEnd(18)}${grouped(a.count).padStart(10)}`),
    '',
    ...Object.entries(r.latency).filter(([, l]) => l.count > 0)
      .map(([kind, l]) => `  ${kind.padEnd(10)} p50 ${millis(l.med)}   p90 ${millis(l['p(90)'])}   p99 ${millis(l['p(99)'])}   max ${millis(l.max)}`),
    '',
    ...r.thresholds.map((t) => `  ${t.ok ? 'ok   ' : 'WRONG'}  ${t.metric} ${t.condition}`),
    '', '',
  ];
  return lines.join('\n');
}
