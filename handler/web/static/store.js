// Browser storage. Where the browser forbids it, or it is full, values are kept in memory as long as the page.

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
      try { real?.setItem(key, value) } catch { real = undefined } // full
    },
    remove(key) {
      memory.delete(key)
      real?.removeItem(key)
    },
  }
}

export const allTabs = storage('localStorage')
export const thisTab = storage('sessionStorage')
