// The form for a token, and the line that names the current user.

import { attr, byId, text } from './dom.js'

export function createTokenForm({ t, clock, format, session, announce }) {
  const form = byId('token-form')
  const input = byId('token')
  const details = byId('token-details')
  let invalid = false

  function render() {
    const { current } = session
    if (current && clock.known) {
      const user = current.guest ? current.user.slice(-6) : current.user
      text(byId('who'), t(current.guest ? 'guest' : 'user', { user, time: format.moment(current.expires, clock.now()) }))
    } else {
      text(byId('who'), session.guests === false ? t('noGuests') : '')
    }
    text(byId('token-wrong'), invalid ? t('badToken') : '')
    attr(input, 'aria-invalid', invalid && 'true')
  }

  form.addEventListener('submit', event => {
    event.preventDefault()
    invalid = !session.paste(input.value.trim())
    if (invalid) {
      announce(t('badToken'))
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
    open() {
      details.open = true
      input.focus()
    },
  }
}
