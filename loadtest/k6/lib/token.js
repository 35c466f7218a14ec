import { hmac } from 'k6/crypto';
import encoding from 'k6/encoding';

const header = encoding.b64encode('{"alg":"HS256","typ":"JWT"}', 'rawurl');

/**
 * A token of a user, as handler/token verifies it: HS256, good for an hour.
 * @param {string} key
 * @param {number} user
 * @param {'user' | 'admin'} role
 */
export function sign(key, user, role = 'user') {
  const now = Math.floor(Date.now() / 1000);
  const claims = encoding.b64encode(`{"sub":"${user}","role":"${role}","iat":${now},"exp":${now + 3600}}`, 'rawurl');
  const text = `${header}.${claims}`;
  return `${text}.${hmac('sha256', key, text, 'base64rawurl')}`;
}
