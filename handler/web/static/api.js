// The calls of the shop's API that this page uses. Each returns
//
//   { code, status, body, problem, wait }
//
// code is "ok", the code of a problem (see /docs/), or "no-answer": then the outcome of the call is not known.

const timeout = 20_000 // ms; the shop answers within 12 s

export function createApi(clock) {
  async function call(method, path, { token, key, body } = {}) {
    const headers = {}
    if (token) headers.Authorization = `Bearer ${token}`
    if (key) headers['Idempotency-Key'] = key
    if (body) headers['Content-Type'] = 'application/json'
    const sent = clock.local()
    let response
    let document
    try {
      response = await fetch(path, {
        method, headers, body: body && JSON.stringify(body),
        cache: 'no-store', credentials: 'omit', redirect: 'error', signal: AbortSignal.timeout(timeout),
      })
      document = await response.json()
    } catch { // no connection, a timeout, half an answer, or the page of a gateway
      return { code: 'no-answer', status: response?.status ?? 0, wait: waitOf(response) }
    }
    const times = document.vouchers?.[0] ?? document.voucher ?? document
    if (times.server_time) clock.observe(times.server_time, sent, clock.local())
    if (response.ok) return { code: 'ok', status: response.status, body: document }
    return { code: document.code ?? 'no-answer', status: response.status, problem: document, wait: waitOf(response) }
  }

  return {
    vouchers: limit => call('GET', `/api/v1/vouchers?limit=${limit}`),
    voucher: id => call('GET', `/api/v1/vouchers/${id}`),
    place: (token, voucher, key) => call('POST', '/api/v1/orders', { token, key, body: { voucher_id: voucher } }),
    orders: (token, before) => call('GET', '/api/v1/orders' + (before ? `?before=${before}` : ''), { token }),
    change: (token, order, action) => call('POST', `/api/v1/orders/${order}/${action}`, { token }),
    guest: () => call('POST', '/api/v1/session/guest'),
  }
}

// waitOf returns the header Retry-After in ms, or 0.
function waitOf(response) {
  const seconds = Number(response?.headers.get('Retry-After'))
  return seconds > 0 ? seconds * 1000 : 0
}
