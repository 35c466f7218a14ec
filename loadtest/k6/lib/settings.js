// The settings of a script: the numbers of scenarios.json, which the Go load generator has too. Variables change them
// (k6 run -e RATE=500 sale.js).

/**
 * @typedef {object} Settings
 * @property {string} scenario
 * @property {string} url        address of the shop
 * @property {string} key        signs tokens
 * @property {number} stock      units of the voucher
 * @property {number} users      after the last one, the first comes again
 * @property {number} firstUser  number of the first of them
 * @property {number} rate       arrivals a second
 * @property {number} arrivals   number of all arrivals
 * @property {number} early      seconds for which buyers come before the sale opens (script sale)
 * @property {number} copies     how often an impatient buyer sends a request at the same time
 * @property {number} copyShare  of the arrivals that are impatient, from 0 to 1
 * @property {number} paySeconds until an unpaid order expires
 * @property {number} payShare   share of the orders that are paid
 * @property {number} cancelShare share of the orders that are cancelled
 * @property {number} vus        arrivals that are served at the same time, at most
 * @property {number} settle     seconds to repeat a request whose outcome is unknown
 * @property {number} timeout    seconds to wait for an answer
 * @property {number} dropped    number of arrivals that may find no free virtual user
 * @property {number} accepted   most milliseconds until 99 of 100 orders are answered
 * @property {number} refused    most milliseconds until 99 of 100 refusals are answered
 * @property {string} report     path of the reports, without .json and .html
 */

/**
 * The variables' names are the settings' in capitals: COPY_SHARE is copyShare.
 * @param {string} scenario
 * @returns {Settings}
 */
export function settings(scenario) {
  const numbers = JSON.parse(open(import.meta.resolve('../scenarios.json')))[scenario];
  /** @type {(name: string, otherwise: number) => number} */
  const number = (name, otherwise) => {
    const text = __ENV[variable(name)];
    const value = text === undefined || text === '' ? (numbers[name] ?? otherwise) : Number(text);
    if (!Number.isFinite(value) || value < 0) {
      throw new Error(`${variable(name)} is ${text}; it must be a number, 0 or more`);
    }
    return value;
  };
  const rate = number('rate', 0);
  const seconds = number('seconds', 0);
  return {
    scenario, rate,
    url: (__ENV.SECKILL_URL || 'http://127.0.0.1:8080').replace(/\/+$/, ''),
    key: key(),
    stock: number('stock', 0), users: number('users', 0), firstUser: number('firstUser', 2),
    arrivals: __ENV.SECONDS ? rate * seconds : number('arrivals', rate * seconds),
    early: number('early', 3), copies: number('copies', 1), copyShare: number('copyShare', 0), paySeconds: number('paySeconds', 900),
    payShare: number('payShare', 0), cancelShare: number('cancelShare', 0),
    vus: number('vus', Math.max(100, Math.ceil(rate))),
    settle: number('settle', 30), timeout: number('timeout', 15), dropped: number('dropped', 0),
    accepted: number('accepted', 2000), refused: number('refused', 1000),
    report: __ENV.REPORT || `k6-${scenario}`,
  };
}

/** @param {string} name */
function variable(name) {
  return name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** The key of the shop. An embedded one keeps it in its data directory, for which a relative path will not do here. */
function key() {
  if (__ENV.SECKILL_JWT_KEY) {
    return __ENV.SECKILL_JWT_KEY;
  }
  if (__ENV.SECKILL_DATA) {
    return open(`${__ENV.SECKILL_DATA}/jwt.key`).trim();
  }
  throw new Error('SECKILL_JWT_KEY is needed to sign tokens, or SECKILL_DATA, the data directory of an embedded shop (an absolute path)');
}

/**
 * A share of all numbers, evenly and always the same; a larger share includes a smaller one. As in loadtest/scenario.go.
 * @param {number} n
 * @param {number} share
 */
export function spread(n, share) {
  return (n * 619) % 1000 < share * 1000;
}
