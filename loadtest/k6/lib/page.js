import { grouped, millis } from './report.js';

/** @param {unknown} value */
const escaped = (value) => String(value).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/**
 * @param {string[]} head
 * @param {unknown[][]} rows a cell that is a number stands to the right
 */
function table(head, rows) {
  const cell = (/** @type {unknown} */ v) => typeof v === 'number' || /^[\d.,]+( ms)?$/.test(String(v)) ? `<td class="n">${escaped(v)}</td>` : `<td>${escaped(v)}</td>`;
  return `<table><thead><tr>${head.map((h) => `<th scope="col">${escaped(h)}</th>`).join('')}</tr></thead>
<tbody>${rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`).join('\n')}</tbody></table>`;
}

const style = `
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --good: #1a7f37; --bad: #cf222e; --bar: #0969da; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --line: #30363d; --good: #3fb950; --bad: #ff7b72; --bar: #58a6ff; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 strong { color: var(--good); } h1 strong.bad, .bad { color: var(--bad); }
table { border-collapse: collapse; margin: 0 0 2rem; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.bar { display: grid; grid-template-columns: 14rem 1fr 7rem; gap: .6rem; align-items: center; }
.bar i { display: block; height: 1rem; min-width: 2px; background: var(--bar); border-radius: 2px; }
.bar span:last-child { text-align: right; font-variant-numeric: tabular-nums; }`;

/**
 * A page that needs nothing else.
 * @param {import('./report.js').Result} r
 */
export function page(r) {
  const most = Math.max(1, ...r.answers.map((a) => a.count));
  const bars = r.answers.map((a) => `<div class="bar"><span>${escaped(a.op)}: ${escaped(a.outcome)}</span>
<i style="width: ${(100 * a.count / most).toFixed(1)}%"></i><span>${grouped(a.count)}</span></div>`).join('\n');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>k6 ${escaped(r.scenario)}: ${r.ok ? 'nothing wrong' : 'something is wrong'}</title><style>${style}</style></head><body>
<h1>${escaped(r.scenario)}: <strong${r.ok ? '' : ' class="bad"'}>${r.ok ? 'nothing wrong' : 'something is wrong'}</strong></h1>
<p>${grouped(r.requests)} requests by ${grouped(r.arrivals)} arrivals in ${r.seconds.toFixed(1)} s, ${grouped(r.dropped)} arrivals dropped;
${grouped(r.orders)} orders.</p>
<h2>What must be nothing</h2>
${table(Object.keys(r.defects), [Object.values(r.defects)])}
<h2>Answers</h2>
${bars}
<h2>Time to answer a request to buy</h2>
${table(['', 'requests', 'p50', 'p90', 'p99', 'max'], Object.entries(r.latency).map(([kind, l]) =>
    [kind, grouped(l.count ?? 0), millis(l.med), millis(l['p(90)']), millis(l['p(99)']), millis(l.max)]))}
<h2>Thresholds</h2>
${table(['', 'metric', 'condition'], r.thresholds.map((t) => [t.ok ? 'ok' : 'WRONG', t.metric, t.condition]))}
<h2>Settings</h2>
${table(['setting', 'value'], Object.entries(r.settings))}
</body></html>
`;
}
