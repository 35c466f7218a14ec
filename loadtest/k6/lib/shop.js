import { sleep } from 'k6';
import { hmac } from 'k6/crypto';
import encoding from 'k6/encoding';
import http from 'k6/http';
import { answers, latency, refusals, unexpected, unsettled } from './metrics.js';

/**
 * @typedef {object} Answer
 * @property {string} outcome  placed, replayed, done, a code of the API, or how there came no answer
 * @property {string} order    id of the order that was placed, or ''
 * @property {number} status
 * @property {string | ArrayBuffer | null} body
 */

const accepted = new Set(['placed', 'replayed', 'done']);
const refused = new Set(refusals);
/** Repeating the same request will tell. */
const unknown = new Set(['outcome-unknown', 'timeout', 'broken', 'gateway']);

/** The shop, as one of its users sees it. */
export class Shop {
  /** @param {import('./settings.js').Settings} settings */
  constructor(settings) {
    this.settings = settings;
  }

  /**
   * @param {number} user
   * @param {string} op
   * @param {string} [key] of the request, so that it can be repeated
   * @param {'user' | 'admin'} [role]
   */
  params(user, op, key, role) {
    /** @type {Record<string, string>} */
    const headers = { Authorization: `Bearer ${sign(this.settings.key, user, role)}`, 'Content-Type': 'application/json' };
    if (key) {
      headers['Idempotency-Key'] = key;
    }
    return { headers, timeout: this.settings.timeout * 1000, tags: { op, name: op } };
  }

  /**
   * Asks for one unit, all copies of the request at the same time, until the outcome is known.
   * @param {number} user
   * @param {string} voucher
   * @param {string} key
   * @param {number} copies
   * @returns {Answer[]} one for each request
   */
  place(user, voucher, key, copies) {
    const url = `${this.settings.url}/api/v1/orders`;
    const body = `{"voucher_id":"${voucher}"}`;
    const params = this.params(user, 'place', key);
    const responses = copies > 1
      ? http.batch(Array.from({ length: copies }, () => ({ method: 'POST', url, body, params })))
      : [http.post(url, body, params)];
    const all = responses.map((response) => note('place', response));
    if (all.some((a) => unknown.has(a.outcome)) && !all.some((a) => a.order)) {
      all.push(this.settled(url, body, params));
    }
    return all;
  }

  /**
   * Repeats a request until its answer is final.
   * @param {string} url
   * @param {string} body
   * @param {ReturnType<Shop['params']>} params
   */
  settled(url, body, params) {
    const end = Date.now() + this.settings.settle * 1000;
    for (let pause = 0.05; ; pause = Math.min(2 * pause, 1)) {
      sleep(pause);
      const a = note('place', http.post(url, body, params));
      if (!unknown.has(a.outcome) && !['in-progress', 'busy', 'unavailable', 'rate-limited'].includes(a.outcome)) {
        return a;
      }
      if (Date.now() > end) {
        unsettled.add(1);
        return a;
      }
    }
  }

  /**
   * @param {number} user
   * @param {string} order
   * @param {'pay' | 'cancel'} verb
   */
  change(user, order, verb) {
    return note(verb, http.post(`${this.settings.url}/api/v1/orders/${order}/${verb}`, '{}', this.params(user, verb)));
  }

  /**
   * @param {number} user
   * @param {string} order
   */
  look(user, order) {
    return note('look', http.get(`${this.settings.url}/api/v1/orders/${order}`, this.params(user, 'look')));
  }

  /**
   * A request beside the load. It throws unless it succeeds.
   * @param {string} method
   * @param {string} path
   * @param {number} user
   * @param {{role?: 'user' | 'admin', body?: object, timeout?: number}} [how]
   * @returns {any} the document
   */
  must(method, path, user, how = {}) {
    const params = this.params(user, 'around', undefined, how.role);
    params.timeout = (how.timeout ?? this.settings.timeout) * 1000;
    const response = http.request(method, this.settings.url + path, how.body ? JSON.stringify(how.body) : null, params);
    if (response.status < 200 || response.status > 299) {
      throw new Error(`${method} ${path}: ${response.status} ${response.error} ${response.body}`);
    }
    return response.json();
  }
}

/**
 * Classifies and counts an answer.
 * @param {string} op
 * @param {import('k6/http').RefinedResponse<any>} response
 * @returns {Answer}
 */
function note(op, response) {
  const a = read(op, response);
  answers.add(1, { op, outcome: a.outcome });
  const known = accepted.has(a.outcome) || op === 'place' && (refused.has(a.outcome) || unknown.has(a.outcome));
  if (!known) {
    unexpected.add(1, { op });
    console.error(`unexpected answer to ${op}: ${response.status} ${response.error} ${response.body}`);
    answers.add(1, { op, outcome: 'unexpected' });
  }
  if (op === 'place') {
    const kind = accepted.has(a.outcome) ? 'accepted' : refused.has(a.outcome) ? 'refused' : 'other';
    latency.add(response.timings.duration, { class: kind });
  }
  return a;
}

const timedOut = 1050; // k6's code of an answer that did not come in time
const dialling = [1200, 1299]; // those of TCP's errors

/**
 * @param {string} op
 * @param {import('k6/http').RefinedResponse<any>} response
 * @returns {Answer}
 */
function read(op, response) {
  const { status, body } = response;
  const a = { status, body, order: '', outcome: 'unexpected' };
  if (status === 0) {
    a.outcome = response.error_code === timedOut ? 'timeout' : failure(response);
  } else if (status >= 200 && status < 300) {
    a.outcome = op !== 'place' ? 'done' : status === 201 ? 'placed' : 'replayed';
    a.order = field(response, 'id');
  } else {
    a.outcome = field(response, 'code') || (status >= 500 ? 'gateway' : 'unexpected');
  }
  return a;
}

/**
 * Whether the request can have reached the shop.
 * @param {import('k6/http').RefinedResponse<any>} response
 */
function failure(response) {
  const refusedToConnect = response.error_code >= dialling[0] && response.error_code <= dialling[1] && /dial/.test(response.error);
  return refusedToConnect ? 'unreachable' : 'broken';
}

/**
 * A text of the document, or ''.
 * @param {import('k6/http').RefinedResponse<any>} response
 * @param {string} name
 */
function field(response, name) {
  try {
    return String(response.json(name) ?? '');
  } catch {
    return ''; // not a document
  }
}

const header = encoding.b64encode('{"alg":"HS256","typ":"JWT"}', 'rawurl');

/**
 * A token of a user, as handler/token verifies it: HS256, good for an hour.
 * @param {string} key
 * @param {number} user
 * @param {'user' | 'admin'} role
 */
function sign(key, user, role = 'user') {
  const now = Math.floor(Date.now() / 1000);
  const claims = encoding.b64encode(`{"sub":"${user}","role":"${role}","iat":${now},"exp":${now + 3600}}`, 'rawurl');
  const text = `${header}.${claims}`;
  return `${text}.${hmac('sha256', key, text, 'base64rawurl')}`;
}
