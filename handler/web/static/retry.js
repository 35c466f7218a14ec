// Repeats requests until their outcome is known. Requests must be safe to repeat: an order with an Idempotency-Key, a
// payment, a cancellation.

const maxRefusals = 8

// Answers with an unknown outcome, and answers that say that nothing was done.
export const uncertain = ['no-answer', 'outcome-unknown', 'internal']
export const refused = ['busy', 'unavailable', 'rate-limited', 'body-timeout']

// retry calls send until there is a definite answer, and returns it. onState({ state, until }) is called before each wait:
//
//   settling  the outcome is not known
//   offline   the outcome is not known, and there is no network
//   waiting   nothing was done; the shop asks to wait until a local time in ms
export async function retry(send, onState = () => {}) {
  let unknown = false
  for (let n = 0, refusedSoFar = 0; ; n++) {
    const answer = await send()
    if (uncertain.includes(answer.code)) {
      unknown = true
      onState({ state: navigator.onLine ? 'settling' : 'offline' })
      await sleep(Math.max(answer.wait ?? 0, backoff(n)), 'online')
    } else if (refused.includes(answer.code) && (unknown || ++refusedSoFar <= maxRefusals)) {
      const wait = Math.max(answer.wait ?? 0, 500) * (1 + Math.random() / 4) // spread clients
      onState({ state: unknown ? 'settling' : 'waiting', until: performance.now() + wait })
      await sleep(wait)
    } else {
      return answer
    }
  }
}

// backoff returns the wait after attempt n in ms: half a second at first, at most ten, with jitter.
const backoff = n => Math.min(500 * 2 ** n, 10_000) * (0.75 + Math.random() / 2)

// sleep waits for a time, or until an event of the window.
export function sleep(ms, event) {
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
