// The shop page: creates its parts and connects them.

import { createApi } from './api.js'
import { createClock } from './clock.js'
import { announcer, byId, text } from './dom.js'
import { createFormat } from './format.js'
import { i18n } from './i18n.js'
import { messages } from './messages.js'
import { createOrders } from './orders.js'
import { createSale } from './sale.js'
import { createSession } from './session.js'
import { createTokenForm } from './token-form.js'

const { t, locale, onchange } = i18n(messages)
const clock = createClock()
const api = createApi(clock)
const session = createSession(api, clock)
const format = createFormat(locale)

function start() {
  const announce = announcer(byId('status'))
  const announceState = (title, state) => announce(`${title}: ${t(state)}`)
  const page = { t, clock, api, session, format, announce, announceState, connection: createConnectionNotice(announce) }
  const orders = page.orders = createOrders(page)
  const tokenForm = createTokenForm(page)
  page.openTokenForm = tokenForm.open
  const sale = createSale(page)

  const render = page.render = () => {
    sale.tick()
    orders.render()
    tokenForm.render()
  }
  function tick() {
    orders.tick()
    setTimeout(tick, sale.tick() + 5)
  }
  orders.onchange(sale.tick)
  onchange(() => {
    announce.clear() // it is in the other language
    render()
  })
  session.onchange(() => {
    orders.clear()
    orders.refresh()
    render()
  })
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return
    sale.refreshSoon()
    orders.refresh()
  })
  tick()
  sale.watch()
  // Get a token before the sale opens, so that buying is one request.
  orders.refresh()
  session.ensure().then(() => {
    tokenForm.render()
    return sale.resume()
  })
}

function createConnectionNotice(announce) {
  const box = byId('notice')
  let since
  return {
    lost() {
      since ??= clock.now()
      const message = clock.known ? t('lost', { time: format.clock(since) }) : t('noShop')
      if (box.hidden) announce(message)
      text(box, message)
      box.hidden = false
    },
    restored() {
      if (!box.hidden) announce(t('found'))
      since = undefined
      box.hidden = true
    },
  }
}

start()
