// Numbers and times in the reader's language.

export function createFormat(locale) {
  const two = n => String(n).padStart(2, '0')
  return {
    money: cents => new Intl.NumberFormat(locale(), { style: 'currency', currency: 'CNY', currencyDisplay: 'narrowSymbol' }).format(cents / 100),
    // countdown returns [hh:]mm:ss, or a number of days from 100 hours on.
    countdown(ms, days) {
      const s = Math.max(0, Math.ceil(ms / 1000))
      if (s >= 360_000) return days(Math.floor(s / 86_400))
      const hours = s < 3600 ? '' : two(Math.floor(s / 3600)) + ':'
      return `${hours}${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`
    },
    // duration returns a length of time in its largest unit, rounded up.
    duration(ms, t) {
      const s = Math.ceil(ms / 1000)
      if (s < 120) return t('seconds', { n: s })
      if (s < 7200) return t('minutes', { n: Math.ceil(s / 60) })
      return s < 172_800 ? t('hours', { n: Math.ceil(s / 3600) }) : t('days', { n: Math.ceil(s / 86_400) })
    },
    clock: ms => new Intl.DateTimeFormat(locale(), { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }).format(ms),
    // moment returns a time, with the day if it is not today.
    moment(ms, now) {
      const sameDay = new Date(ms).toDateString() === new Date(now).toDateString()
      const day = sameDay ? {} : { month: 'short', day: 'numeric' }
      return new Intl.DateTimeFormat(locale(), { ...day, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(ms)
    },
  }
}
