// The shop's time, by which sales open and close. The browser's own may be wrong, and set while one waits: it is never
// asked for the time of day. performance.now() only ever goes forward.

const drift = 1e-4 // how much two clocks may part, in seconds a second

export function createClock(local = () => performance.now()) {
  let offset // shop's time minus local time, in ms
  let error = Infinity // how wrong offset may be, when it was found
  let found = 0

  return {
    // heard takes a time that the shop read between two local instants: in the middle, give or take half of the round
    // trip. What can be least wrong is kept, until something contradicts it: then a clock was set, or this machine slept.
    heard(serverTime, sent, received) {
      const half = (received - sent) / 2
      const heard = Date.parse(serverTime) - (sent + half)
      if (!Number.isFinite(heard)) return
      const sofar = error + (received - found) * drift
      if (half < sofar || Math.abs(heard - offset) > half + sofar) {
        offset = heard
        error = half
        found = received
      }
    },
    local,
    now: () => local() + (offset ?? NaN), // NaN until the first heard
    get known() { return offset !== undefined },
  }
}
