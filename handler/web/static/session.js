// Who is buying: a guest of this browser, or whoever's token was pasted.
//
// A guest's token is kept: closing the page loses no order, and all tabs are one guest. A pasted token may be worth more:
// it is forgotten with its tab.

import { persist } from './persist.js'
import { kept, ofTab } from './store.js'

const stored = 'seckill.session'
const early = 10_000 // ms: a token that is about to expire is not begun with

export function createSession(api, clock) {
  let current = read(ofTab) ?? read(kept)
  let asked // the request for a guest's session that is under way
  let guests // whether the shop has any; undefined until it was asked
  const listeners = []

  function set(session, storage) {
    current = session
    if (storage) storage.set(stored, JSON.stringify(session))
    for (const listener of listeners) listener()
  }

  const valid = () => current && !(current.expires - clock.now() < early) // also while the shop's time is not known

  async function newGuest() {
    const answer = await persist(api.guest)
    if (answer.code === 'ok') {
      guests = true
      set({ token: answer.body.token, user: answer.body.user_id, expires: Date.parse(answer.body.expires_at), guest: true }, kept)
    } else if (answer.code === 'not-found' || answer.code === 'method-not-allowed') {
      guests = false
      set(undefined)
    }
    asked = undefined
  }

  window.addEventListener('storage', event => {
    if (event.key === stored && !read(ofTab)) set(read(kept)) // another tab has a new guest
  })

  return {
    get current() { return valid() ? current : undefined },
    get guests() { return guests },
    onchange: listener => listeners.push(listener),
    // ensure returns a token, and gets one if there is none; undefined if it could not.
    async ensure() {
      if (!valid()) await (asked ??= newGuest())
      return valid() ? current.token : undefined
    },
    reject(token) {
      if (current?.token !== token) return
      ofTab.remove(stored)
      kept.remove(stored)
      set(undefined)
    },
    // paste takes somebody's token, or returns false if it is none.
    paste(token) {
      const claims = decode(token)
      if (!claims) return false
      set({ token, user: claims.sub, expires: claims.exp * 1000, guest: false }, ofTab)
      return true
    },
  }
}

function read(storage) {
  try {
    return JSON.parse(storage.get(stored)) ?? undefined
  } catch {
    return undefined
  }
}

// decode reads what a token claims. The shop checks it; this is for display.
function decode(token) {
  try {
    const claims = JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')))
    return typeof claims.sub === 'string' && claims.exp > 0 ? claims : undefined
  } catch {
    return undefined
  }
}
