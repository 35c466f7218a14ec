// The settings of a script: the numbers of scenarios.json, which the Go load generator has too. Variables change them
// (k6 run -e RATE=500 sale.js); loadtest/README.md explains each.

/** @typedef {ReturnType<typeof settings>} Settings */

/**
 * The variables' names are the settings' in capitals: COPY_SHARE is copyShare.
 * @param {string} scenario
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
