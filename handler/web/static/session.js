// The token of the buyer: of a guest, or one that the user has pasted.
//
// All tabs of a browser share the guest's token, also after the page is closed. A pasted token may be more valuable and is
// only stored for its tab.

import { retry } from './retry.js'
import { allTabs, thisTab } from './store.js'

const storageKey = 'seckill.session'
const minValidity = 10_000 // ms: a token that expires sooner is not used

export function createSession(api, clock) {
  let current = read(thisTab) ?? read(allTabs)
  let pending // the request for a guest's token
  let guests // whether the shop has guests; undefined until it has answered
  const listeners = []

  function set(session, storage) {
    current = session
    if (storage) storage.set(storageKey, JSON.stringify(session))
    for (const listener of listeners) listener()
  }

  const valid = () => current && !(current.expires - clock.now() < minValidity) // true while the shop's time is not known

  async function newGuest() {
    const answer = await retry(api.guest)
    if (answer.code === 'ok') {
      guests = true
      set({ token: answer.body.token, user: answer.body.user_id, expires: Date.parse(answer.body.expires_at), guest: true }, allTabs)
    } else if (answer.code === 'not-found' || answer.code === 'method-not-allowed') {
      guests = false
      set(undefined)
    }
    pending = undefined
  }

  window.addEventListener('storage', event => {
    if (event.key === storageKey && !read(thisTab)) set(read(allTabs)) // from another tab
  })

  return {
    get current() { return valid() ? current : undefined },
    get guests() { return guests },
    onchange: listener => listeners.push(listener),
    // ensure returns a valid token, a new guest's if necessary, or undefined.
    async ensure() {
      if (!valid()) await (pending ??= newGuest())
      return valid() ? current.token : undefined
    },
    reject(token) {
      if (current?.token !== token) return
      thisTab.remove(storageKey)
      allTabs.remove(storageKey)
      set(undefined)
    },
    // paste uses a token of the user. It returns false if the text is not a token.
    paste(token) {
      const claims = decode(token)
      if (!claims) return false
      set({ token, user: claims.sub, expires: claims.exp * 1000, guest: false }, thisTab)
      return true
    },
  }
}

function read(storage) {
  try {
    return JSON.parse(storage.get(storageKey)) ?? undefined
  } catch {
    return undefined
  }
}

// decode returns the claims of a token for display. Only the shop verifies them.
function decode(token) {
  try {
    const claims = JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')))
    return typeof claims.sub === 'string' && claims.exp > 0 ? claims : undefined
  } catch {
    return undefined
  }
}
