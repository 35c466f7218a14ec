// What is on sale: the tickets, kept up to date, and what becomes of a click on one.

import { createCard, phaseOf } from './card.js'
import { byId, text } from './dom.js'
import { pause } from './persist.js'
import { buy, newAttempt, unsettled } from './purchase.js'

const every = 3_000 // ms between looks at the stock
const most = 100 // vouchers that the shop lists at once
const milestones = [60, 10] // seconds before the opening at which it is announced

export function createSale(page) {
  const { api, clock, t, format, say, said, session, orders, notice } = page
  const cards = new Map()
  const list = byId('vouchers')
  const ended = byId('ended-list')
  let limit = 20

  // refresh looks at all vouchers. It returns how long to wait until the next look.
  async function refresh() {
    const answer = await api.vouchers(limit)
    if (answer.code !== 'ok') {
      notice.lost()
      return Math.max(every, answer.wait)
    }
    notice.found()
    show(answer.body.vouchers)
    byId('more').hidden = !answer.body.next || limit >= most
    return every
  }

  function show(vouchers) {
    const fresh = []
    for (const voucher of vouchers) {
      orders.named(voucher.id, voucher.title)
      const card = cards.get(voucher.id)
      if (card) update(card, voucher)
      else fresh.push(voucher)
    }
    unblank()
    for (const voucher of fresh.sort(inOrder)) add(voucher)
    clear(new Set(vouchers.map(v => v.id)))
    byId('orders').hidden = false
    page.render() // all of it: who is buying may have been known before the shop's time
  }

  function unblank() {
    if (list.ariaBusy) list.replaceChildren()
    list.ariaBusy = null
  }

  function inOrder(a, b) {
    const rank = v => ['open', 'soon', 'over'].indexOf(phaseOf(v, clock.now()))
    return rank(a) - rank(b) || (rank(a) === 1 ? Date.parse(a.starts_at) - Date.parse(b.starts_at) : 0)
  }

  // add puts a new voucher below the others: nothing moves away under a finger.
  function add(voucher) {
    const card = createCard(voucher, page, purchase)
    card.phase = phaseOf(voucher, clock.now())
    cards.set(voucher.id, card)
    unblank()
    const place = card.phase === 'over' ? ended : list
    place.append(card.element)
  }

  // clear puts what has ended below, and drops what is not listed any more, unless somebody is at it.
  function clear(listed) {
    for (const { id, element, voucher, running } of cards.values()) {
      if (phaseOf(voucher, clock.now()) !== 'over' || running || element.contains(document.activeElement)) continue
      if (!listed.has(id) && !orders.live(id)) {
        element.remove()
        cards.delete(id)
      } else if (element.parentNode !== ended) ended.prepend(element)
    }
    byId('nothing').hidden = list.children.length > 0
    byId('ended').hidden = ended.children.length === 0
  }

  function update(card, voucher) {
    if (Date.parse(voucher.server_time) < Date.parse(card.voucher.server_time)) return // an answer that was overtaken
    const was = card.voucher
    card.voucher = voucher
    if (phaseOf(voucher, clock.now()) !== 'open' || orders.live(card.id) >= voucher.user_limit) return
    if (was.stock > 0 && voucher.stock === 0) said(voucher.title, 'soldOut')
    if (was.stock === 0 && voucher.stock > 0) say(t('saidBack', { title: voucher.title }))
  }

  // purchase is a click: one attempt at a time for each voucher.
  async function purchase(card) {
    if (card.running) return
    card.running = true
    tell(card, { state: 'buying' })
    const token = await session.ensure()
    if (token) await settle(card, newAttempt(card.id, token, session.current?.guest === true))
    else if (session.guests === false) {
      tell(card, undefined)
      page.askForToken()
    } else tell(card, { state: 'failed', note: () => t('noteBusy') })
    card.running = false
    card.render()
  }

  async function settle(card, attempt) {
    const answer = await buy(attempt, api, clock, progress => tell(card, progress))
    const { title, pay_seconds: seconds } = card.voucher
    const { problem } = answer
    if (problem?.voucher) card.voucher = problem.voucher
    if (answer.body ?? problem?.order) orders.put(answer.body ?? problem.order)
    tell(card, undefined)
    switch (answer.code) {
      case 'ok':
        say(t('saidGot', { title, time: format.span(seconds * 1000, t) }))
        break
      case 'already-ordered':
        said(title, 'mine')
        break
      case 'sold-out':
        card.voucher = { ...card.voucher, stock: 0, server_time: new Date(clock.now()).toISOString() }
        said(title, 'soldOut')
        break
      case 'sale-not-started':
      case 'sale-ended':
        break // the card shows the times that came with it
      default:
        failed(card, attempt, answer)
    }
    if (answer.code === 'ok') refreshSoon()
  }

  function failed(card, attempt, { code, wait, problem }) {
    if (code === 'unauthenticated') session.reject(attempt.token)
    const note = () => {
      if (code === 'unauthenticated') return t('noteSignIn')
      return wait > 0 ? t('noteBusy') : t('noteRefused', { detail: problem?.detail ?? code })
    }
    tell(card, { state: 'failed', note })
    say(note())
  }

  function tell(card, progress) {
    card.progress = progress
    card.render()
  }

  // tick shows the time that is left, and tells when something opens. It returns in how many ms to do so again.
  function tick() {
    if (!clock.known) return 100
    const now = clock.now()
    let again = 1000 - (now % 1000) // the next full second, or an opening before it
    for (const card of cards.values()) {
      const phase = phaseOf(card.voucher, now)
      const opening = Date.parse(card.voucher.starts_at) - now
      const left = Math.ceil(opening / 1000)
      if (phase === 'soon') again = Math.min(again, opening)
      if (phase === 'soon' && milestones.includes(left) && card.said !== left) {
        card.said = left
        say(t('saidSoon', { title: card.voucher.title, time: format.span(left * 1000, t) }))
      }
      if (card.phase === 'soon' && phase === 'open') say(t('saidOpen', { title: card.voucher.title }))
      card.phase = phase
      card.render()
    }
    text(byId('shop-time'), format.clock(now))
    return again
  }

  let early // ends the current pause
  async function watch() {
    for (;;) {
      const wait = await refresh()
      await Promise.race([
        pause(wait * (0.8 + Math.random() * 0.4), 'online'),
        new Promise(resolve => { early = resolve }),
      ])
      if (document.hidden) await new Promise(resolve => document.addEventListener('visibilitychange', resolve, { once: true }))
    }
  }
  const refreshSoon = () => early?.()

  // resume settles what a page before this one did not get to know.
  async function resume() {
    for (const attempt of unsettled()) {
      const answer = await api.voucher(attempt.voucher)
      if (answer.code !== 'ok') continue
      if (!cards.has(attempt.voucher)) add(answer.body)
      const card = cards.get(attempt.voucher)
      card.running = true
      settle(card, attempt).finally(() => { card.running = false; card.render() })
    }
  }

  byId('more').addEventListener('click', () => {
    limit = Math.min(limit * 2, most)
    refreshSoon()
  })

  return { tick, watch, resume, refreshSoon }
}
