// The buyer's own orders: the time left to pay them, paying and cancelling.

import { attr, byId, el, text } from './dom.js'
import { persist } from './persist.js'

const checkEvery = 1_500 // ms between looks at an order whose time to pay is over

export function createOrders(page) {
  const { api, clock, t, format, say, said, session } = page
  const rows = new Map() // by id
  const titles = new Map() // by voucher
  const list = byId('order-list')
  const dialog = byId('sure')
  let next // what to ask older orders with
  let due = 0 // local time of the next look
  let changed = () => {}

  const all = () => [...rows.values()].map(row => row.order)
  const live = voucher => all().filter(o => o.voucher_id === voucher && o.status !== 'closed').length
  const toPay = voucher => all().find(o => o.voucher_id === voucher && o.status === 'pending')

  async function refresh(before) {
    const token = session.current?.token
    if (!token) return
    const answer = await api.orders(token, before)
    if (session.current?.token !== token) return // somebody else by now
    if (answer.code === 'unauthenticated') session.reject(token)
    if (answer.code !== 'ok') return
    for (const order of answer.body.orders) put(order)
    if (before || next === undefined) next = answer.body.next ?? ''
    render()
  }

  // put shows an order as it is now. An older answer never overwrites a newer state: paid and closed stay so.
  function put(order) {
    const row = rows.get(order.id)
    if (!row) insert(createRow(order))
    else if (row.order.status === 'pending') {
      if (order.close_reason === 'expired') said(row.name(), 'expired')
      row.order = order
    }
    learnTitle(order.voucher_id)
    render()
    changed()
  }

  // insert keeps the newest first. Ids are numbers of up to 63 bits, which only grow.
  function insert(row) {
    const newer = (a, b) => a.length - b.length || (a < b ? -1 : 1)
    const after = all().filter(o => newer(o.id, row.order.id) < 0).sort((a, b) => newer(b.id, a.id))[0]
    list.insertBefore(row.element, after ? rows.get(after.id).element : null)
    rows.set(row.order.id, row)
  }

  async function learnTitle(voucher) {
    if (titles.has(voucher)) return
    titles.set(voucher, '')
    const answer = await api.voucher(voucher)
    if (answer.code === 'ok') named(voucher, answer.body.title)
    else titles.delete(voucher)
    render()
  }

  const named = (voucher, title) => titles.set(voucher, title)

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
    const row = { order, element, name: () => titles.get(order.voucher_id) || t('order', { id }) }
    pay.addEventListener('click', () => change(row, 'pay'))
    cancel.addEventListener('click', async () => { if (await sure(row)) change(row, 'cancel') })
    row.focus = () => title.focus()
    row.focused = () => element.contains(document.activeElement)
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
        text(timer, ms > 0 ? format.left(ms, n => t('days', { n })) : '')
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

  // sure asks before a unit is given away.
  function sure(row) {
    if (row.working) return false
    text(byId('sure-what'), row.name())
    dialog.returnValue = ''
    dialog.showModal()
    return new Promise(resolve => dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true }))
  }

  // change pays or cancels. Both are safe to repeat.
  async function change(row, verb) {
    const token = session.current?.token
    if (row.working || !token || row.order.status !== 'pending') return
    if (verb === 'pay' && Date.parse(row.order.pay_by) <= clock.now()) return
    row.working = verb
    row.note = undefined
    render()
    const answer = await persist(() => api.change(token, row.order.id, verb), ({ state }) => {
      row.note = () => t(state === 'waiting' ? 'noteWaiting' : 'noteUnknown')
      render()
    })
    row.working = row.note = undefined
    const order = answer.body ?? answer.problem?.order
    if (order) put(order)
    if (answer.code === 'ok') said(row.name(), verb === 'pay' ? 'paid' : 'cancelled')
    else if (answer.code === 'refund-due') say(t('saidRefund'))
    else if (!order) row.note = () => t('failed', { detail: answer.problem?.detail ?? answer.code })
    if (answer.code === 'unauthenticated') session.reject(token)
    const focused = row.focused()
    render()
    if (focused && row.order.status !== 'pending') row.focus() // its buttons are gone
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
    if (late && clock.local() >= due) {
      due = clock.local() + checkEvery
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
  for (const [id, answer] of [['sure-no', ''], ['sure-yes', 'yes']]) byId(id).addEventListener('click', () => dialog.close(answer))

  return { live, toPay, put, named, refresh, render, tick, clear, onchange: listener => { changed = listener } }
}
