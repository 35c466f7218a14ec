// Who is buying, and the place to paste a token.

import { attr, byId, text } from './dom.js'

export function createWho({ t, clock, format, session, say }) {
  const form = byId('token-form')
  const input = byId('token')
  const details = byId('token-details')
  let wrong = false

  function render() {
    const { current } = session
    if (current && clock.known) {
      const user = current.guest ? current.user.slice(-6) : current.user
      text(byId('who'), t(current.guest ? 'guest' : 'user', { user, time: format.moment(current.expires, clock.now()) }))
    } else {
      text(byId('who'), session.guests === false ? t('noGuests') : '')
    }
    text(byId('token-wrong'), wrong ? t('badToken') : '')
    attr(input, 'aria-invalid', wrong && 'true')
  }

  form.addEventListener('submit', event => {
    event.preventDefault()
    wrong = !session.paste(input.value.trim())
    if (wrong) {
      say(t('badToken'))
      input.focus()
    } else {
      input.value = ''
      details.open = false
      details.querySelector('summary').focus()
    }
    render()
  })

  return {
    render,
    ask() {
      details.open = true
      input.focus()
    },
  }
}
