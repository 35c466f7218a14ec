// One purchase, from the click to a definite answer.

import { refused, retry, sleep, uncertain } from './retry.js'
import { allTabs, thisTab } from './store.js'

const soon = 5_000 // ms: an attempt that is early by less waits for the opening
const storageKey = 'seckill.attempts'
const resumable = 120_000 // ms: an older attempt is not sent again

// newKey also works over plain HTTP, unlike crypto.randomUUID.
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), b => b.toString(16).padStart(2, '0')).join('')

// attempts stores requests with an unknown outcome, so that the page can resolve them after a reload. Each is stored
// where its token is.
const storageOf = a => (a.guest ? allTabs : thisTab)
const read = storage => {
  try { return JSON.parse(storage.get(storageKey) ?? '{}') } catch { return {} }
}
const write = (a, all) => storageOf(a).set(storageKey, JSON.stringify(all))
const attempts = {
  put: a => write(a, { ...read(storageOf(a)), [a.voucher]: a }),
  remove(a) {
    const { [a.voucher]: known, ...others } = read(storageOf(a))
    if (known?.key === a.key) write(a, others)
  },
}

// unresolvedAttempts returns the attempts that were stored before a reload.
export const unresolvedAttempts = () => [allTabs, thisTab].flatMap(storage => Object.values(read(storage))).filter(a => {
  const young = Date.now() - a.at < resumable
  if (!young) attempts.remove(a)
  return young
})

export const newAttempt = (voucher, token, guest) => ({ voucher, token, guest, key: newKey(), at: Date.now() })

// buy sends an attempt until there is a definite answer, always with the same key: one key, one order. onState gets the
// states of retry, "buying", "in-progress" (another request of this user is running) and "opening" (slightly too early).
export async function buy(attempt, api, clock, onState) {
  const send = async () => {
    attempts.put(attempt)
    const answer = await api.place(attempt.token, attempt.voucher, attempt.key)
    if (uncertain.includes(answer.code)) attempt.unknown = true
    else if (!attempt.unknown || ![...refused, 'in-progress'].includes(answer.code)) attempts.remove(attempt)
    return answer
  }
  onState({ state: 'buying' })
  for (let n = 0; ; n++) {
    const answer = await retry(send, onState)
    const early = answer.code === 'sale-not-started' ? Date.parse(answer.problem.voucher.starts_at) - clock.now() : Infinity
    if (answer.code === 'in-progress' && n < 60) {
      onState({ state: 'in-progress' })
      await sleep(Math.min(300 * 1.3 ** n, 3_000))
    } else if (early < soon) {
      onState({ state: 'opening' })
      await sleep(Math.max(early, 0) + 20)
    } else {
      return answer
    }
  }
}
