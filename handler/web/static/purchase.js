// Buying one unit, from the click to an answer that stands.

import { pause, persist, refused, uncertain } from './persist.js'
import { kept, ofTab } from './store.js'

const soon = 5_000 // ms: who is early by less is served at the opening
const stored = 'seckill.attempts'
const resumable = 120_000 // ms: an older attempt is not sent again behind its buyer's back

// newKey works over plain HTTP too, unlike crypto.randomUUID.
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), b => b.toString(16).padStart(2, '0')).join('')

// attempts are the requests whose outcome is not known, for the next page to settle. Each is kept where its token is.
const home = a => (a.guest ? kept : ofTab)
const read = storage => {
  try { return JSON.parse(storage.get(stored) ?? '{}') } catch { return {} }
}
const write = (a, all) => home(a).set(stored, JSON.stringify(all))
const attempts = {
  put: a => write(a, { ...read(home(a)), [a.voucher]: a }),
  remove(a) {
    const { [a.voucher]: known, ...others } = read(home(a))
    if (known?.key === a.key) write(a, others)
  },
}

// unsettled returns the attempts that a page before this one left behind.
export const unsettled = () => [kept, ofTab].flatMap(storage => Object.values(read(storage))).filter(a => {
  const young = Date.now() - a.at < resumable
  if (!young) attempts.remove(a)
  return young
})

export const newAttempt = (voucher, token, guest) => ({ voucher, token, guest, key: newKey(), at: Date.now() })

// buy sends an attempt until there is an answer, always with its own key: one key, one order. tell hears the states of
// persist, and "buying", "in-progress" (another request of this user is being placed) and "opening" (a moment early).
export async function buy(attempt, api, clock, tell) {
  const send = async () => {
    attempts.put(attempt)
    const answer = await api.place(attempt.token, attempt.voucher, attempt.key)
    if (uncertain.includes(answer.code)) attempt.unknown = true
    else if (!attempt.unknown || ![...refused, 'in-progress'].includes(answer.code)) attempts.remove(attempt)
    return answer
  }
  tell({ state: 'buying' })
  for (let n = 0; ; n++) {
    const answer = await persist(send, tell)
    const early = answer.code === 'sale-not-started' ? Date.parse(answer.problem.voucher.starts_at) - clock.now() : Infinity
    if (answer.code === 'in-progress' && n < 60) {
      tell({ state: 'in-progress' })
      await pause(Math.min(300 * 1.3 ** n, 3_000))
    } else if (early < soon) {
      tell({ state: 'opening' })
      await pause(Math.max(early, 0) + 20)
    } else {
      return answer
    }
  }
}
