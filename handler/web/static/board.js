// The live board: what the shop does right now.

import { drawChart, drawTimeline, readColours, span } from './board.chart.js'
import { feed } from './board.feed.js'
import { eventColour, texts } from './board.text.js'
import { byId, el, text } from './dom.js'
import { i18n } from './i18n.js'
import { thisTab } from './store.js'

const { t, onchange, locale } = i18n(texts)
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)')
const step = 500 // milliseconds between two rows

let board // the state from the shop; undefined before the first snapshot
let rows = [] // for the charts: { t, dt, …figures }; counters by how much they grew in dt
let lastRow // the figures at the last row
let recent = [] // [t, figures] of the last second, for rates
let clockOffset = -Infinity // the board's time minus this page's

const counters = [
  'placed', 'replayed', 'sold_out', 'already_ordered', 'in_progress', 'outside', 'mistaken', 'busy', 'unavailable', 'unknown',
  'internal',
  'commits', 'committed', 'lock_granted', 'lock_held', 'lock_bypassed', 'lock_lost', 'lock_failed',
]
const answers = counters.slice(0, 11)
const sum = (of, names) => names.reduce((all, name) => all + of[name], 0)

// Numbers as text.

const number = (n, digits = 0) => n.toLocaleString(locale(), { maximumFractionDigits: digits })
const count = n => (n < 0 ? '–' : number(n, n < 10 && n % 1 ? 1 : 0))
function time(us) {
  if (us < 0) return '–'
  if (us < 1000) return `${count(us)} µs`
  const ms = us / 1000
  return ms < 1000 ? `${number(ms, ms < 10 ? 1 : 0)} ms` : `${number(ms / 1000, ms < 10_000 ? 1 : 0)} s`
}
const clock = ms => new Date(ms).toLocaleTimeString(locale(), { hourCycle: 'h23' })
const eventText = e => t('e:' + e.kind, { what: e.what ?? '' })

// Charts. Each legend shows the current values.

const rate = (...names) => row => (1000 * sum(row, names)) / row.dt
const charts = [
  { name: 'cStock', scale: 'linear', floor: 10, label: count, series: [
    { name: 'stock', color: 'accent', fill: true, value: r => r.stock },
    { name: 'sold', color: 'blue', value: r => (r.stock < 0 ? -1 : r.total - r.stock) },
  ] },
  { name: 'cAnswers', scale: 'log', floor: 100, label: count, series: [
    { name: 'placed', color: 'good', fill: true, value: rate('placed') },
    { name: 'replayed', color: 'blue', value: rate('replayed') },
    { name: 'sold_out', color: 'soft', value: rate('sold_out') },
    { name: 'already_ordered', color: 'violet', value: rate('already_ordered') },
    { name: 'in_progress', color: 'warn', value: rate('in_progress') },
    { name: 'outside', color: 'control', value: rate('outside', 'mistaken') },
    { name: 'failed', color: 'accent', value: rate('busy', 'unavailable', 'unknown', 'internal') },
  ] },
  { name: 'cTime', scale: 'log', unit: 100, floor: 10_000, label: time, series: [
    { name: 'p50', color: 'good', fill: true, value: r => r.p50 },
    { name: 'p90', color: 'warn', value: r => r.p90 },
    { name: 'p99', color: 'accent', value: r => r.p99 },
  ] },
  { name: 'cLocks', scale: 'log', floor: 100, label: count, series: [
    { name: 'granted', color: 'good', fill: true, value: rate('lock_granted') },
    { name: 'held', color: 'blue', value: rate('lock_held') },
    { name: 'bypassed', color: 'warn', value: rate('lock_bypassed', 'lock_failed') },
    { name: 'lockLost', color: 'accent', value: rate('lock_lost') },
  ] },
  { name: 'cQueue', scale: 'log', floor: 100, label: count, series: [
    { name: 'batch', color: 'blue', fill: true, value: r => (r.commits ? r.committed / r.commits : 0) },
    { name: 'queue', color: 'warn', value: r => r.queue },
  ] },
  { name: 'cOutbox', scale: 'linear', floor: 100, label: count, series: [
    { name: 'outbox', color: 'violet', fill: true, value: r => r.outbox },
    { name: 'oldest', color: 'warn', own: true, floor: 1000, value: r => r.outbox_oldest, show: ms => (ms > 0 ? time(ms * 1000) : '–') },
  ] },
]

function createCharts() {
  for (const chart of charts) {
    chart.canvas = el('canvas', { 'aria-hidden': 'true' })
    const legend = el('ul', { role: 'list' })
    for (const s of chart.series) {
      s.out = el('b', { class: 'number' }, '–')
      s.caption = el('span')
      const item = el('li', {}, s.caption, ' ', s.out)
      item.style.setProperty('--own', `var(--${s.color})`)
      legend.append(item)
    }
    chart.title = el('h2')
    byId('charts').append(el('figure', { class: 'card' }, el('figcaption', {}, chart.title, legend), chart.canvas))
  }
  for (const name of tiles) byId('tiles').append(el('div', {}, el('dt'), el('dd', {}, '–')))
}

const tiles = ['orders', 'orderRate', 'askRate', 'p99']

function showTexts() {
  for (const chart of charts) {
    text(chart.title, t(chart.name))
    for (const s of chart.series) text(s.caption, t(s.name))
  }
  tiles.forEach((name, i) => text(byId('tiles').children[i].firstChild, t(name)))
  if (board) showLists()
}

// Messages from the shop.

function applySnapshot(data) {
  board = data
  clockOffset = -Infinity
  recent = []
  lastRow = { ...data.figures, t: data.t }
  const h = data.history
  rows = h.t.map((at, i) => {
    const row = { t: at, dt: i ? at - h.t[i - 1] : step }
    for (const name in h) if (name !== 't') row[name] = h[name][i]
    return row
  }).slice(1)
}

function applyChange(data) {
  Object.assign(board.figures, data.figures)
  board.t = data.t
  if (data.vouchers) board.vouchers = data.vouchers
  if (data.instances) board.instances = data.instances
  if (data.events) board.events.push(...data.events)
}

function onMessage(type, data) {
  if (type === 'snapshot') applySnapshot(data)
  else if (!board) return
  else applyChange(data)
  clockOffset = Math.max(clockOffset - 1, board.t - performance.now())
  const f = board.figures
  recent.push([board.t, { ...f }])
  while (recent.length > 2 && recent[1][0] < board.t - 1000) recent.shift()
  if (board.t - lastRow.t >= step) {
    const row = { ...f, t: board.t, dt: board.t - lastRow.t }
    for (const name of counters) row[name] -= lastRow[name]
    rows.push(row)
    lastRow = { ...f, t: board.t }
    while (rows[0].t < board.t - span - step) rows.shift()
  }
  if (data.vouchers) showVouchers()
  if (data.instances) showInstances()
  if (data.events) showEvents()
}

const now = () => Math.max(board.t, Math.min(board.t + 2000, performance.now() + clockOffset))

// The page.

function showLists() {
  showVouchers()
  showInstances()
  byId('events').replaceChildren()
  showEvents()
}

function perSecond(names) {
  const [from, before] = recent[0], [to, after] = recent.at(-1)
  return to > from ? (1000 * (sum(after, names) - sum(before, names))) / (to - from) : 0
}

function showNumbers() {
  const f = board.figures, v = board.vouchers[0]
  const others = board.instances.filter(i => !i.self && !i.lost)
  const more = name => others.reduce((all, i) => all + i[name], 0)
  text(byId('left'), v ? count(f.stock) : '–')
  byId('bar').firstChild.style.width = v && f.total > 0 ? `${(100 * f.stock) / f.total}%` : 0
  const shown = [
    v ? count(f.total - f.stock) : '–', count(Math.round(perSecond(['placed']) + more('order_rate'))),
    count(Math.round(perSecond(answers) + more('answer_rate'))), time(f.p99),
  ]
  shown.forEach((value, i) => text(byId('tiles').children[i].lastChild, value))
  const last = rows.at(-1)
  if (last) for (const c of charts) for (const s of c.series) text(s.out, (s.show ?? c.label)(s.value(last)))
  text(byId('clock'), clock(Date.parse(board.started_at) + now()))
  showHealth(f)
}

function chips(parent, list) {
  while (parent.children.length < list.length) parent.append(el('li', { class: 'chip' }))
  list.forEach(([words, level], i) => {
    text(parent.children[i], words)
    parent.children[i].dataset.level = level
  })
}

function showHealth(f) {
  const away = (name, is, what = 'away') => [`${t(name)}: ${t(is ? what : 'ok')}`, is ? 'bad' : 'good']
  const ids = f.worker < 0 ? count(f.ids_left) : `${t('worker')} ${f.worker}`
  const ahead = f.ahead > 0 ? ` +${number(f.ahead)} ms` : ''
  chips(byId('health'), [
    away('database', f.database_away), away('lock', f.lock_open, 'bypass'), away('broker', f.broker_away),
    [`${t('ids')}: ${f.ids_away ? t('away') : ids}${f.backup ? ` (${t('backup')})` : ''}${ahead}`, f.ids_away ? 'bad' : f.backup || f.ahead > 5 ? 'warn' : 'good'],
  ])
}

function showVouchers() {
  const v = board.vouchers[0]
  text(byId('title'), v ? v.title : t('nothing'))
  text(byId('state'), v ? t(v.state) : '')
  byId('state').dataset.level = { 'on-sale': 'good', 'sold-out': 'bad', coming: 'warn' }[v?.state] ?? ''
  text(byId('of'), v ? t('left', { n: v.total }) : '')
  fillTable('vouchers', ['title', 'state', 'stock', 'total', 'orders'], board.vouchers.map(v => [
    v.title, t(v.state), count(v.stock), count(v.total), count(v.total - v.stock),
  ]))
}

function showInstances() {
  const n = board.instances.length
  text(byId('instance'), n > 1 ? t('many', { n, name: board.instance }) : board.instance)
  fillTable('instances', ['instance', 'state', 'orderRate', 'askRate', 'p99', 'queue', 'worker', 'ahead'], board.instances.map(i => {
    const of = (name, show = count) => show(i.lost ? -1 : i[name] ?? -1)
    return [i.name, t(i.lost ? 'gone' : i.self ? 'here' : 'serving'), of('order_rate'), of('answer_rate'), of('p99', time), of('queue'), of('worker'), of('ahead')]
  }))
}

function showEvents() {
  board.events = board.events.slice(-100)
  const list = byId('events'), last = +(list.firstChild?.dataset.n ?? 0)
  for (const e of board.events.slice(-12)) {
    if (e.n > last) { // only new ones, or a screen reader would read all again
      list.prepend(el('li', { class: eventColour(e.kind), 'data-n': e.n },
        el('time', {}, clock(Date.parse(board.started_at) + e.t)), ' ', el('span', {}, eventText(e))))
    }
  }
  while (list.children.length > 12) list.lastChild.remove()
}

function fillTable(id, head, body) {
  const [thead, tbody] = byId(id).children
  thead.replaceChildren(el('tr', {}, ...head.map(name => el('th', { scope: 'col' }, t(name)))))
  tbody.replaceChildren(...body.map(cells => el('tr', {}, ...cells.map((cell, i) => el(i ? 'td' : 'th', i ? { class: 'number' } : { scope: 'row' }, cell)))))
}

function showFigures() {
  if (!document.querySelector('details').open) return
  byId('figures').tBodies[0].replaceChildren(...Object.entries(board.figures).map(([name, value]) =>
    el('tr', {}, el('th', { scope: 'row' }, name), el('td', { class: 'number' }, number(value)))))
}

// Draws ten times a second, or once a second for readers who prefer reduced motion.

let painted = 0, listed = 0

function paint(at) {
  requestAnimationFrame(paint)
  if (!board || at - painted < (reducedMotion.matches ? 1000 : 100)) return
  painted = at
  showNumbers()
  const colour = readColours(), moment = now()
  const marks = board.events.filter(e => e.t > moment - span).map(e => ({ t: e.t, colour: eventColour(e.kind), text: eventText(e) }))
  for (const chart of charts) drawChart(chart, rows, moment, marks, colour)
  drawTimeline(byId('timeline'), marks, moment, colour, s => (s ? t('ago', { s }) : t('now')))
  if (at - listed < 1000) return
  listed = at
  showFigures()
}

createCharts()
showTexts()
onchange(showTexts)

const tokenKey = 'seckill.board.token'
const restart = feed('/api/v1/board/stream', {
  token: () => thisTab.get(tokenKey),
  onMessage,
  onLink(state) {
    text(byId('link'), t(state))
    byId('link').dataset.level = state === 'live' ? 'good' : 'bad'
    byId('token-form').hidden = state !== 'token'
  },
})
byId('token-form').onsubmit = event => {
  event.preventDefault()
  thisTab.set(tokenKey, byId('token').value.trim())
  restart()
}
requestAnimationFrame(paint)
