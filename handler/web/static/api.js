// The shop's API, as far as this page uses it. Every answer comes back as
//
//   { code, status, body, problem, wait }
//
// with the code "ok", the code of a problem (see /docs/), or "no-answer": then nobody knows what the shop has done.

const patience = 20_000 // ms; the shop answers within 12 s

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
        cache: 'no-store', credentials: 'omit', redirect: 'error', signal: AbortSignal.timeout(patience),
      })
      document = await response.json()
    } catch { // no connection, no answer in time, or half an answer, or not the shop's: a gateway's page
      return { code: 'no-answer', status: response?.status ?? 0, wait: waitOf(response) }
    }
    const times = document.vouchers?.[0] ?? document.voucher ?? document
    if (times.server_time) clock.heard(times.server_time, sent, clock.local())
    if (response.ok) return { code: 'ok', status: response.status, body: document }
    return { code: document.code ?? 'no-answer', status: response.status, problem: document, wait: waitOf(response) }
  }

  return {
    vouchers: limit => call('GET', `/api/v1/vouchers?limit=${limit}`),
    voucher: id => call('GET', `/api/v1/vouchers/${id}`),
    place: (token, voucher, key) => call('POST', '/api/v1/orders', { token, key, body: { voucher_id: voucher } }),
    orders: (token, before) => call('GET', '/api/v1/orders' + (before ? `?before=${before}` : ''), { token }),
    change: (token, order, verb) => call('POST', `/api/v1/orders/${order}/${verb}`, { token }),
    guest: () => call('POST', '/api/v1/session/guest'),
  }
}

// waitOf is what Retry-After asks for, in ms.
function waitOf(response) {
  const seconds = Number(response?.headers.get('Retry-After'))
  return seconds > 0 ? seconds * 1000 : 0
}
