// The user's orders: the time left to pay, payment and cancellation.

import { attr, byId, el, text } from './dom.js'
import { retry } from './retry.js'

const checkInterval = 1_500 // ms between requests while an order is past its time to pay

export function createOrders(page) {
  const { api, clock, t, format, announce, announceState, session } = page
  const rows = new Map() // by id
  const titles = new Map() // by voucher
  const list = byId('order-list')
  const dialog = byId('sure')
  let next // the parameter before of the next page; '' on the last one
  let nextCheck = 0 // local time
  let onChange = () => {}

  const all = () => [...rows.values()].map(row => row.order)
  const live = voucher => all().filter(o => o.voucher_id === voucher && o.status !== 'closed').length
  const toPay = voucher => all().find(o => o.voucher_id === voucher && o.status === 'pending')

  async function refresh(before) {
    const token = session.current?.token
    if (!token) return
    const answer = await api.orders(token, before)
    if (session.current?.token !== token) return // the user has changed
    if (answer.code === 'unauthenticated') session.reject(token)
    if (answer.code !== 'ok') return
    for (const order of answer.body.orders) put(order)
    if (before || next === undefined) next = answer.body.next ?? ''
    render()
  }

  // put shows an order. A late answer never overwrites a newer state: paid and closed are final.
  function put(order) {
    const row = rows.get(order.id)
    if (!row) insert(createRow(order))
    else if (row.order.status === 'pending') {
      if (order.close_reason === 'expired') announceState(row.name(), 'expired')
      row.order = order
    }
    loadTitle(order.voucher_id)
    render()
    onChange()
  }

  // insert keeps the newest order first. Ids only grow.
  function insert(row) {
    const older = [...list.children].find(e => BigInt(e.dataset.order) < BigInt(row.order.id))
    list.insertBefore(row.element, older ?? null)
    rows.set(row.order.id, row)
  }

  async function loadTitle(voucher) {
    if (titles.has(voucher)) return
    titles.set(voucher, '')
    const answer = await api.voucher(voucher)
    if (answer.code === 'ok') setTitle(voucher, answer.body.title)
    else titles.delete(voucher)
    render()
  }

  const setTitle = (voucher, title) => titles.set(voucher, title)

  function createRow(order) {
    const id = order.id
    const title = el('h3', { id: `order-${id}`, tabindex: -1 })
    const pill = el('span', { class: 'pill' })
    const about = el('p', { class: 'about number' })
    const label = el('span')
    const timer = el('span', { class: 'number', role: 'timer' })
    const left = el('p', { class: 'pay-left' }, label, ' ', timer)
    const pay = el('button', { type: 'button', class: 'button main', id: `pay-${id}`, 'aria-labelledby': `pay-${id} order-${id}` })
    const cancel = el('button', { type: 'button', class: 'button', id: `cancel-${id}`, 'aria-labelledby': `cancel-${id} order-${id}` })
    const actions = el('div', { class: 'actions' }, pay, cancel)
    const note = el('p', { class: 'note' })
    const element = el('li', { class: 'order card', 'data-order': id }, el('div', { class: 'line' }, title, pill), about, left, actions, note)
    const row = { order, element, title, name: () => titles.get(order.voucher_id) || t('order', { id }) }
    pay.addEventListener('click', () => change(row, 'pay'))
    cancel.addEventListener('click', async () => { if (await confirmed(row)) change(row, 'cancel') })
    row.render = now => {
      const { order, working } = row
      const state = order.close_reason ?? order.status
      const ms = Date.parse(order.pay_by) - now
      attr(element, 'data-state', state)
      text(title, row.name())
      text(pill, t(state))
      text(about, `${format.money(order.price_cents)} · ${t('order', { id })}`)
      actions.hidden = left.hidden = order.status !== 'pending'
      if (order.status === 'pending') {
        text(label, t(ms > 0 ? 'timeToPay' : 'timeUp'))
        text(timer, ms > 0 ? format.countdown(ms, n => t('days', { n })) : '')
        attr(timer, 'data-near', ms < 60_000)
      }
      text(pay, t(working === 'pay' ? 'paying' : 'pay'))
      text(cancel, t(working === 'cancel' ? 'cancelling' : 'cancel'))
      attr(pay, 'aria-disabled', (working || ms <= 0) && 'true')
      attr(cancel, 'aria-disabled', working && 'true')
      text(note, row.note?.() ?? '')
    }
    return row
  }

  // confirmed asks the user before a unit is given back.
  function confirmed(row) {
    if (row.working) return false
    text(byId('sure-what'), row.name())
    dialog.returnValue = ''
    dialog.showModal()
    return new Promise(resolve => dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true }))
  }

  // change pays or cancels an order. Both are safe to repeat.
  async function change(row, action) {
    const token = session.current?.token
    if (row.working || !token || row.order.status !== 'pending') return
    if (action === 'pay' && Date.parse(row.order.pay_by) <= clock.now()) return
    row.working = action
    row.note = undefined
    render()
    const answer = await retry(() => api.change(token, row.order.id, action), ({ state }) => {
      row.note = () => t(state === 'waiting' ? 'noteWaiting' : 'noteUnknown')
      render()
    })
    row.working = row.note = undefined
    const order = answer.body ?? answer.problem?.order
    if (order) put(order)
    if (answer.code === 'ok') announceState(row.name(), action === 'pay' ? 'paid' : 'cancelled')
    else if (answer.code === 'refund-due') announce(t('saidRefund'))
    else if (!order) row.note = () => t('failed', { detail: answer.problem?.detail ?? answer.code })
    if (answer.code === 'unauthenticated') session.reject(token)
    const focused = row.element.contains(document.activeElement)
    render()
    if (focused && row.order.status !== 'pending') row.title.focus() // its buttons are hidden now
  }

  function render() {
    if (!clock.known) return
    const now = clock.now()
    for (const row of rows.values()) row.render(now)
    byId('no-orders').hidden = rows.size > 0
    byId('older').hidden = !next
    const open = all().filter(o => o.status === 'pending').length
    const count = byId('order-count')
    text(count, open > 0 ? String(open) : '')
    count.hidden = open === 0
  }

  function tick() {
    render()
    const late = all().some(o => o.status === 'pending' && Date.parse(o.pay_by) < clock.now())
    if (late && clock.local() >= nextCheck) {
      nextCheck = clock.local() + checkInterval
      refresh()
    }
  }

  function clear() {
    rows.clear()
    list.replaceChildren()
    next = undefined
    render()
  }

  byId('older').addEventListener('click', () => refresh(next))

  return { live, toPay, put, setTitle, refresh, render, tick, clear, onchange: listener => { onChange = listener } }
}
