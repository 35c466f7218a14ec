// The card of one voucher: its terms, the time until it opens or ends, and the button to buy it.

import { attr, el, text } from './dom.js'

const workingStates = ['buying', 'opening', 'in-progress', 'settling', 'offline', 'waiting']
const notes = {
  opening: 'noteSoon', 'in-progress': 'noteInProgress', settling: 'noteUnknown', offline: 'noteUnknown', waiting: 'noteWaiting',
}

export function phaseOf(voucher, now) {
  if (now < Date.parse(voucher.starts_at)) return 'soon'
  return now < Date.parse(voucher.ends_at) ? 'open' : 'over'
}

export function createCard(voucher, { t, format, clock, orders, session }, onBuy) {
  const id = voucher.id
  const title = el('h2', { id: `title-${id}`, class: 'title' })
  const price = el('p', { class: 'price number' })
  const terms = el('p', { class: 'terms' })
  const fill = el('div', { class: 'fill' })
  const bar = el('div', { class: 'bar', role: 'meter', 'aria-valuemin': 0 }, fill)
  const stock = el('p', { class: 'left number' })
  const stamp = el('p', { class: 'stamp', 'aria-hidden': 'true' })
  const phase = el('p', { class: 'phase' })
  const timer = el('p', { class: 'timer number', role: 'timer' })
  const button = el('button', { type: 'button', class: 'button main buy', 'aria-describedby': `title-${id} note-${id}` })
  const note = el('p', { class: 'note', id: `note-${id}` })
  const element = el('li', { 'data-voucher': id },
    el('article', { class: 'ticket card', 'aria-labelledby': `title-${id}` },
      el('div', { class: 'what' }, title, el('div', { class: 'cost' }, price, stamp), terms, el('div', { class: 'stock' }, bar, stock)),
      el('div', { class: 'act' }, phase, timer, button, note)))

  const card = { id, element, voucher, render }
  button.addEventListener('click', () => {
    if (button.getAttribute('aria-disabled') !== 'true') onBuy(card)
  })

  // view returns what the card shows: { state, enabled, label, note }.
  function view(now) {
    const { progress, voucher } = card
    const phase = phaseOf(voucher, now)
    if (workingStates.includes(progress?.state)) return { state: progress.state, label: progressLabel(progress), note: notes[progress.state] && t(notes[progress.state]) }
    if (orders.live(id) >= voucher.user_limit) return { state: 'mine', label: t('mine'), note: mineNote(now) }
    if (phase === 'over') return { state: 'over', label: t('ended') }
    if (phase === 'soon') return { state: 'soon', label: t('soon'), note: t('noteSoon') }
    if (voucher.stock === 0) return { state: 'sold-out', label: t('soldOut'), note: t('noteSoldOut') }
    if (session.guests === false && !session.current) return { state: 'sign-in', enabled: true, label: t('signIn'), note: t('noGuests') }
    const buy = progress?.state === 'failed' ? 'again' : orders.live(id) > 0 ? 'another' : 'buy'
    return { state: 'open', enabled: true, label: t(buy), note: progress?.note?.() ?? '' }
  }

  const progressLabel = ({ state, until }) => t(state, { s: Math.max(1, Math.ceil(((until ?? 0) - clock.local()) / 1000)) })

  function mineNote(now) {
    const open = orders.toPay(id)
    if (!open) return t('notePaid')
    return t('noteGot', { time: format.duration(Math.max(0, Date.parse(open.pay_by) - now), t) })
  }

  function render() {
    const { voucher } = card
    const now = clock.now()
    const phaseNow = phaseOf(voucher, now)
    const { state, enabled, label, note: noteText } = view(now)
    attr(element, 'data-state', state)
    text(title, voucher.title)
    text(price, format.money(voucher.price_cents))
    text(terms, t('terms', { n: voucher.user_limit, time: format.duration(voucher.pay_seconds * 1000, t) }))
    renderStock(voucher)
    text(phase, t(phaseNow === 'soon' ? 'opensIn' : phaseNow === 'open' ? 'endsIn' : 'ended'))
    const target = Date.parse(phaseNow === 'soon' ? voucher.starts_at : voucher.ends_at)
    text(timer, phaseNow === 'over' ? format.moment(target, now) : format.countdown(target - now, n => t('days', { n })))
    attr(timer, 'data-near', target - now < 10_000 && phaseNow !== 'over')
    text(button, label)
    attr(button, 'aria-disabled', !enabled && 'true')
    text(note, noteText ?? '')
    text(stamp, ['mine', 'sold-out', 'over'].includes(state) ? label : '')
  }

  function renderStock({ stock: left, total }) {
    const stockText = t('stockLeft', { n: left, total })
    text(stock, stockText)
    attr(bar, 'aria-label', t('stock'))
    attr(bar, 'aria-valuemax', total)
    attr(bar, 'aria-valuenow', left)
    attr(bar, 'aria-valuetext', stockText)
    fill.style.transform = `scaleX(${total > 0 ? left / total : 0})`
  }

  return card
}
