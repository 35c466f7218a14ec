// The shop page: its parts, put together.

import { createApi } from './api.js'
import { createClock } from './clock.js'
import { announcer, byId, text } from './dom.js'
import { createFormat } from './format.js'
import { i18n } from './i18n.js'
import { messages } from './messages.js'
import { createOrders } from './orders.js'
import { createSale } from './sale.js'
import { createSession } from './session.js'
import { createWho } from './who.js'

const { t, locale, onchange } = i18n(messages)
const clock = createClock()
const api = createApi(clock)
const session = createSession(api, clock)
const format = createFormat(locale)

function start() {
  const say = announcer(byId('status'))
  const said = (title, state) => say(`${title}: ${t(state)}`)
  const page = { t, clock, api, session, format, say, said, notice: createNotice(say) }
  const orders = page.orders = createOrders(page)
  const who = createWho(page)
  page.askForToken = who.ask
  const sale = createSale(page)

  const render = page.render = () => {
    sale.tick()
    orders.render()
    who.render()
  }
  function tick() {
    orders.tick()
    setTimeout(tick, sale.tick() + 5)
  }
  orders.onchange(sale.tick)
  onchange(() => {
    say.clear() // it was in the other language
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
  // A session is had before the sale opens, so that then there is one request to send.
  orders.refresh()
  session.ensure().then(() => {
    who.render()
    return sale.resume()
  })
}

function createNotice(say) {
  const box = byId('notice')
  let since
  return {
    lost() {
      since ??= clock.now()
      const words = clock.known ? t('lost', { time: format.clock(since) }) : t('noShop')
      if (box.hidden) say(words)
      text(box, words)
      box.hidden = false
    },
    found() {
      if (!box.hidden) say(t('found'))
      since = undefined
      box.hidden = true
    },
  }
}

start()
