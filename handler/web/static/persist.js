// Requests that are repeated until it is known what became of them. Whatever is sent here must be safe to repeat: an
// order with its Idempotency-Key, a payment, a cancellation.

const refusals = 8 // after which a shop that does nothing is left alone

// Answers after which it may or may not be done, and those that say that nothing was.
export const uncertain = ['no-answer', 'outcome-unknown', 'internal']
export const refused = ['busy', 'unavailable', 'rate-limited', 'body-timeout']

// persist sends until there is a definite answer, and returns it. tell({ state, until }) hears what is waited for:
//
//   settling  nobody knows whether it was done; asking again
//   offline   the same, and there is no network
//   waiting   nothing was done; the shop asked to come back at until (local ms)
export async function persist(send, tell = () => {}, local = () => performance.now()) {
  let unknown = false
  for (let n = 0, refusedSoFar = 0; ; n++) {
    const answer = await send()
    if (uncertain.includes(answer.code)) {
      unknown = true
      tell({ state: navigator.onLine ? 'settling' : 'offline' })
      await pause(Math.max(answer.wait ?? 0, backoff(n)), 'online')
    } else if (refused.includes(answer.code) && (unknown || ++refusedSoFar <= refusals)) {
      const wait = Math.max(answer.wait ?? 0, 500) * (1 + Math.random() / 4) // not all at once again
      tell({ state: unknown ? 'settling' : 'waiting', until: local() + wait })
      await pause(wait)
    } else {
      return answer
    }
  }
}

// backoff is how long to wait after the n-th attempt: half a second at first, ten at most, each differently.
const backoff = n => Math.min(500 * 2 ** n, 10_000) * (0.75 + Math.random() / 2)

// pause waits, or until the window hears of an event.
export function pause(ms, event) {
  return new Promise(resolve => {
    const done = () => {
      clearTimeout(timer)
      if (event) window.removeEventListener(event, done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    if (event) window.addEventListener(event, done)
  })
}
