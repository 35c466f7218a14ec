// The shop's time, which decides when sales open and close. The browser's time of day is never used, because it may be
// wrong or change. performance.now() only moves forward.

const drift = 1e-4 // how much two clocks may drift apart, in ms per ms

export function createClock() {
  const local = () => performance.now()
  let offset // shop time minus local time, in ms
  let error = Infinity // maximum error of offset when it was measured
  let measuredAt = 0

  return {
    // observe takes a shop time that was read between two local times. The best measurement is kept until a newer one
    // contradicts it: then a clock was set, or this machine slept.
    observe(serverTime, sent, received) {
      const newError = (received - sent) / 2
      const newOffset = Date.parse(serverTime) - (sent + newError)
      if (!Number.isFinite(newOffset)) return
      const oldError = error + (received - measuredAt) * drift
      if (newError < oldError || Math.abs(newOffset - offset) > newError + oldError) {
        offset = newOffset
        error = newError
        measuredAt = received
      }
    },
    local,
    now: () => local() + (offset ?? NaN), // NaN before the first observe
    get known() { return offset !== undefined },
  }
}
