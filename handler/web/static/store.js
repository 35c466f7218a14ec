// Storage that is there also where the browser forbids it: then it lasts as long as the page.

function storage(name) {
  const memory = new Map()
  let real
  try {
    real = window[name]
    real.setItem('seckill.probe', '1')
    real.removeItem('seckill.probe')
  } catch {
    real = undefined
  }
  return {
    get: key => (real ? real.getItem(key) : (memory.get(key) ?? null)),
    set(key, value) {
      memory.set(key, value)
      try { real?.setItem(key, value) } catch { real = undefined } // full: remembered by this page at least
    },
    remove(key) {
      memory.delete(key)
      real?.removeItem(key)
    },
  }
}

export const kept = storage('localStorage') // until it is removed
export const ofTab = storage('sessionStorage') // until the tab is closed
