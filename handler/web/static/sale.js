// The list of vouchers: keeps the cards up to date, and runs purchases.

import { createCard, phaseOf } from './card.js'
import { byId, text } from './dom.js'
import { buy, newAttempt, unresolvedAttempts } from './purchase.js'
import { sleep } from './retry.js'

const refreshInterval = 3_000 // ms
const maxVouchers = 100 // of one answer of the shop
const milestones = [60, 10] // seconds before the opening at which it is announced

export function createSale(page) {
  const { api, clock, t, format, announce, announceState, session, orders, connection } = page
  const cards = new Map()
  const list = byId('vouchers')
  const ended = byId('ended-list')
  let limit = 20

  // refresh loads all vouchers. It returns the time until the next refresh in ms.
  async function refresh() {
    const answer = await api.vouchers(limit)
    if (answer.code !== 'ok') {
      connection.lost()
      return Math.max(refreshInterval, answer.wait)
    }
    connection.restored()
    show(answer.body.vouchers)
    byId('more').hidden = !answer.body.next || limit >= maxVouchers
    return refreshInterval
  }

  function show(vouchers) {
    const fresh = []
    for (const voucher of vouchers) {
      orders.setTitle(voucher.id, voucher.title)
      const card = cards.get(voucher.id)
      if (card) update(card, voucher)
      else fresh.push(voucher)
    }
    removePlaceholders()
    for (const voucher of fresh.sort(compareVouchers)) add(voucher)
    cleanUp(new Set(vouchers.map(v => v.id)))
    byId('orders').hidden = false
    page.render() // all of it, because times can be shown from now on
  }

  function removePlaceholders() {
    if (list.ariaBusy) list.replaceChildren()
    list.ariaBusy = null
  }

  function compareVouchers(a, b) {
    const rank = v => ['open', 'soon', 'over'].indexOf(phaseOf(v, clock.now()))
    return rank(a) - rank(b) || (rank(a) === 1 ? Date.parse(a.starts_at) - Date.parse(b.starts_at) : 0)
  }

  // add appends a new voucher, so that nothing moves while the user is about to click.
  function add(voucher) {
    const card = createCard(voucher, page, purchase)
    card.phase = phaseOf(voucher, clock.now())
    cards.set(voucher.id, card)
    removePlaceholders()
    const parent = card.phase === 'over' ? ended : list
    parent.append(card.element)
  }

  // cleanUp moves ended vouchers to their own list and removes those that are not listed any more, except cards in use.
  function cleanUp(listed) {
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
    if (Date.parse(voucher.server_time) < Date.parse(card.voucher.server_time)) return // a late answer
    const was = card.voucher
    card.voucher = voucher
    if (phaseOf(voucher, clock.now()) !== 'open' || orders.live(card.id) >= voucher.user_limit) return
    if (was.stock > 0 && voucher.stock === 0) announceState(voucher.title, 'soldOut')
    if (was.stock === 0 && voucher.stock > 0) announce(t('saidBack', { title: voucher.title }))
  }

  // purchase handles a click: one attempt at a time for each voucher.
  async function purchase(card) {
    if (card.running) return
    card.running = true
    setProgress(card, { state: 'buying' })
    const token = await session.ensure()
    if (token) await complete(card, newAttempt(card.id, token, session.current?.guest === true))
    else if (session.guests === false) {
      setProgress(card, undefined)
      page.openTokenForm()
    } else setProgress(card, { state: 'failed', note: () => t('noteBusy') })
    card.running = false
    card.render()
  }

  async function complete(card, attempt) {
    const answer = await buy(attempt, api, clock, progress => setProgress(card, progress))
    const { title, pay_seconds: seconds } = card.voucher
    const { problem } = answer
    if (problem?.voucher) card.voucher = problem.voucher
    if (answer.body ?? problem?.order) orders.put(answer.body ?? problem.order)
    setProgress(card, undefined)
    switch (answer.code) {
      case 'ok':
        announce(t('saidGot', { title, time: format.duration(seconds * 1000, t) }))
        break
      case 'already-ordered':
        announceState(title, 'mine')
        break
      case 'sold-out':
        card.voucher = { ...card.voucher, stock: 0, server_time: new Date(clock.now()).toISOString() }
        announceState(title, 'soldOut')
        break
      case 'sale-not-started':
      case 'sale-ended':
        break // the card shows the times in the answer
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
    setProgress(card, { state: 'failed', note })
    announce(note())
  }

  function setProgress(card, progress) {
    card.progress = progress
    card.render()
  }

  // tick shows the time that is left and announces openings. It returns the time until the next tick in ms.
  function tick() {
    if (!clock.known) return 100
    const now = clock.now()
    let next = 1000 - (now % 1000) // the next full second, or an opening before it
    for (const card of cards.values()) {
      const phase = phaseOf(card.voucher, now)
      const opening = Date.parse(card.voucher.starts_at) - now
      const left = Math.ceil(opening / 1000)
      if (phase === 'soon') next = Math.min(next, opening)
      if (phase === 'soon' && milestones.includes(left) && card.announced !== left) {
        card.announced = left
        announce(t('saidSoon', { title: card.voucher.title, time: format.duration(left * 1000, t) }))
      }
      if (card.phase === 'soon' && phase === 'open') announce(t('saidOpen', { title: card.voucher.title }))
      card.phase = phase
      card.render()
    }
    text(byId('shop-time'), format.clock(now))
    return next
  }

  let refreshSoon = () => {} // ends the wait of watch
  async function watch() {
    for (;;) {
      const wait = await refresh()
      await Promise.race([
        sleep(wait * (0.8 + Math.random() * 0.4), 'online'),
        new Promise(resolve => { refreshSoon = resolve }),
      ])
      if (document.hidden) await new Promise(resolve => document.addEventListener('visibilitychange', resolve, { once: true }))
    }
  }

  // resume completes the purchases that were stored before a reload.
  async function resume() {
    for (const attempt of unresolvedAttempts()) {
      const answer = await api.voucher(attempt.voucher)
      if (answer.code !== 'ok') continue
      if (!cards.has(attempt.voucher)) add(answer.body)
      const card = cards.get(attempt.voucher)
      card.running = true
      complete(card, attempt).finally(() => { card.running = false; card.render() })
    }
  }

  byId('more').addEventListener('click', () => {
    limit = Math.min(limit * 2, maxVouchers)
    refreshSoon()
  })

  return { tick, watch, resume, refreshSoon: () => refreshSoon() }
}
