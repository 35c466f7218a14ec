// Reads the board's event stream with fetch: unlike EventSource it can send a token and sees why it is refused.

const silence = 5000 // milliseconds; the shop sends at least one message a second

// feed calls onMessage(type, data) for each message, and onLink('live' | 'lost' | 'full' | 'token' | 'off') with the state
// of the connection. It reconnects as long as the page is open. It returns a function that reconnects at once.
export function feed(url, { token, onMessage, onLink }) {
  let lastID = '', failures = 0, current, timer

  async function connect() {
    clearTimeout(timer)
    current?.abort()
    const abort = current = new AbortController()
    let wait = 0
    try {
      const headers = { Accept: 'text/event-stream' }
      if (lastID) headers['Last-Event-ID'] = lastID
      if (token()) headers.Authorization = 'Bearer ' + token()
      const answer = await fetch(url, { headers, cache: 'no-store', signal: abort.signal })
      if (answer.ok) await read(answer.body, abort)
      else {
        wait = 1000 * (answer.headers.get('Retry-After') ?? 0)
        if (abort === current) onLink({ 401: 'token', 403: 'token', 404: 'off', 503: 'full' }[answer.status] ?? 'lost')
        if ([401, 403, 404].includes(answer.status)) return
      }
    } catch { /* broken, silent, or replaced by a newer connection */ }
    if (abort !== current) return
    if (!wait) onLink('lost')
    failures++
    // Random, so that viewers of an instance that restarts do not all reconnect at the same moment.
    timer = setTimeout(connect, Math.max(wait, Math.min(250 * 2 ** failures, 8000)) * (0.75 + Math.random() / 2))
  }

  async function read(body, abort) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader()
    let rest = ''
    for (;;) {
      const watchdog = setTimeout(() => abort.abort(), silence)
      const { done, value } = await reader.read()
      clearTimeout(watchdog)
      if (done || abort !== current) return
      const messages = (rest + value).split('\n\n')
      rest = messages.pop()
      for (const message of messages) take(message)
    }
  }

  function take(message) {
    const field = {}
    for (const line of message.split('\n')) {
      const at = line.indexOf(': ')
      field[line.slice(0, at)] = line.slice(at + 2)
    }
    if (!field.data) return
    lastID = field.id ?? lastID
    failures = 0
    onLink('live')
    onMessage(field.event ?? 'change', JSON.parse(field.data))
  }

  connect()
  addEventListener('online', connect)
  return connect
}
