// Numbers and times for people.

export function createFormat(locale) {
  const two = n => String(n).padStart(2, '0')
  return {
    money: cents => new Intl.NumberFormat(locale(), { style: 'currency', currency: 'CNY', currencyDisplay: 'narrowSymbol' }).format(cents / 100),
    left(ms, days) {
      const s = Math.max(0, Math.ceil(ms / 1000))
      if (s >= 360_000) return days(Math.floor(s / 86_400)) // a hundred hours
      const hours = s < 3600 ? '' : two(Math.floor(s / 3600)) + ':'
      return `${hours}${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`
    },
    // span is a length of time in its largest unit, rounded up.
    span(ms, t) {
      const s = Math.ceil(ms / 1000)
      if (s < 120) return t('seconds', { n: s })
      if (s < 7200) return t('minutes', { n: Math.ceil(s / 60) })
      return s < 172_800 ? t('hours', { n: Math.ceil(s / 3600) }) : t('days', { n: Math.ceil(s / 86_400) })
    },
    clock: ms => new Intl.DateTimeFormat(locale(), { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }).format(ms),
    // moment is a time of today, or one with its day.
    moment(ms, now) {
      const sameDay = new Date(ms).toDateString() === new Date(now).toDateString()
      const day = sameDay ? {} : { month: 'short', day: 'numeric' }
      return new Intl.DateTimeFormat(locale(), { ...day, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(ms)
    },
  }
}
