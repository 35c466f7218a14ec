// Charts on canvas, all over the same time axis.

export const span = 120_000 // milliseconds that are shown
const inset = { left: 6, right: 6, top: 10, bottom: 6 }

// prepareCanvas matches the canvas to the screen's resolution. It returns undefined while the canvas is hidden.
function prepareCanvas(canvas) {
  const { clientWidth: w, clientHeight: h } = canvas
  if (!w || !h) return
  const scale = devicePixelRatio || 1
  if (canvas.width !== Math.round(w * scale) || canvas.height !== Math.round(h * scale)) {
    canvas.width = Math.round(w * scale)
    canvas.height = Math.round(h * scale)
  }
  const c = canvas.getContext('2d')
  c.setTransform(scale, 0, 0, scale, 0, 0)
  c.clearRect(0, 0, w, h)
  return { c, w, h, x: (t, now) => inset.left + (w - inset.left - inset.right) * (1 - (now - t) / span) }
}

// readColours reads the page's colours, which change with its colour scheme.
export function readColours() {
  const style = getComputedStyle(document.documentElement)
  return name => style.getPropertyValue('--' + name).trim()
}

// Scales map a value to 0…1. log starts at 0 and shows both 1 per second and 10,000.
const scales = {
  linear: max => ({ of: v => v / max, ticks: [max / 2, max] }),
  log: (max, unit = 1) => {
    const top = Math.log1p(max / unit)
    const ticks = []
    for (let v = unit * 10; v <= max; v *= 10) ticks.push(v)
    return { of: v => Math.log1p(v / unit) / top, ticks }
  },
}

// roundUp returns the next of 1, 2, 5, 10, 20, …
function roundUp(v) {
  const power = 10 ** Math.floor(Math.log10(v))
  return [1, 2, 5, 10].find(n => n * power >= v) * power
}

// drawChart draws { canvas, series: [{ value(row), color, fill, own }], scale, unit, floor, label(value) }. A series with
// own has a scale of its own.
export function drawChart(chart, rows, now, events, colour) {
  const view = prepareCanvas(chart.canvas)
  if (!view) return
  const { c, w, h, x } = view
  const bottom = h - inset.bottom, height = bottom - inset.top
  const common = scales[chart.scale](roundUp(Math.max(chart.floor, ...largest(chart.series.filter(s => !s.own), rows))), chart.unit)
  c.font = `12px ${colour('sans')}`
  c.lineWidth = 1
  c.strokeStyle = colour('line')
  for (const tick of [0, ...common.ticks]) {
    const y = Math.round(bottom - height * common.of(tick)) + 0.5
    line(c, inset.left, y, w - inset.right, y)
  }
  for (const e of events) {
    const at = x(e.t, now)
    if (at < inset.left) continue
    c.strokeStyle = colour(e.colour)
    c.setLineDash([2, 4])
    line(c, at, inset.top, at, bottom)
    c.setLineDash([])
  }
  for (const s of chart.series) {
    const scale = s.own ? scales.linear(roundUp(Math.max(s.floor, ...largest([s], rows)))) : common
    drawSeries(c, rows, s, t => x(t, now), v => bottom - height * Math.min(1, scale.of(v)), bottom, colour(s.color))
  }
  c.fillStyle = colour('soft')
  for (const tick of common.ticks) drawLabel(c, chart.label(tick), inset.left + 2, bottom - height * common.of(tick) + 14, colour('card'))
}

// drawLabel draws text with an outline in the background colour.
function drawLabel(c, words, x, y, paper) {
  c.lineWidth = 4
  c.strokeStyle = paper
  c.strokeText(words, x, y)
  c.fillText(words, x, y)
}

function* largest(series, rows) {
  for (const s of series) for (const row of rows) yield s.value(row)
}

function line(c, x1, y1, x2, y2) {
  c.beginPath()
  c.moveTo(x1, y1)
  c.lineTo(x2, y2)
  c.stroke()
}

// drawSeries draws a series, with gaps where the value is unknown (below 0).
function drawSeries(c, rows, s, x, y, bottom, color) {
  c.strokeStyle = c.fillStyle = color
  c.lineWidth = s.own ? 1.5 : 2.5
  c.lineJoin = 'round'
  if (s.own) c.setLineDash([5, 3])
  let run = []
  const flush = () => {
    if (run.length > 1 && s.fill) {
      c.globalAlpha = 0.18
      c.beginPath()
      c.moveTo(run[0][0], bottom)
      for (const p of run) c.lineTo(...p)
      c.lineTo(run.at(-1)[0], bottom)
      c.fill()
      c.globalAlpha = 1
    }
    c.beginPath()
    run.forEach((p, i) => (i ? c.lineTo(...p) : c.moveTo(...p)))
    c.stroke()
    run = []
  }
  // A series that stays 0 is not drawn: a red line along the bottom would look like an alarm.
  const values = rows.map(s.value)
  rows.forEach((row, i) => {
    const v = values[i]
    if (v > 0 || v === 0 && (s.fill || values[i - 1] > 0 || values[i + 1] > 0)) run.push([x(row.t), y(v)])
    else flush()
  })
  flush()
  c.setLineDash([])
}

// drawTimeline draws a mark for each event, and its text where there is room, the latest first.
export function drawTimeline(canvas, events, now, colour, ago) {
  const view = prepareCanvas(canvas)
  if (!view) return
  const { c, w, h, x } = view
  const y = h - 26
  c.strokeStyle = colour('line')
  c.lineWidth = 2
  line(c, inset.left, y, w - inset.right, y)
  c.fillStyle = colour('soft')
  c.font = `12px ${colour('sans')}`
  for (let t = 0; t <= span; t += 30_000) {
    const words = ago(t / 1000), width = c.measureText(words).width, at = x(now - t, now)
    c.fillText(words, Math.min(Math.max(at - width / 2, 0), w - width), h - 4)
  }
  c.font = `600 15px ${colour('sans')}`
  const free = [w, w] // where text in each row must end
  for (const e of [...events].reverse()) {
    const at = x(e.t, now)
    if (at < inset.left) break
    c.fillStyle = c.strokeStyle = colour(e.colour)
    c.beginPath()
    c.arc(at, y, 6, 0, 7)
    c.fill()
    const width = c.measureText(e.text).width
    const row = free.findIndex(end => Math.min(at, w - width) + width <= end)
    if (row < 0) continue
    const left = Math.min(at, w - width)
    c.lineWidth = 1
    line(c, at, y, at, 20 + row * 20)
    drawLabel(c, e.text, left, 16 + row * 20, colour('card'))
    free[row] = left - 16
  }
}
