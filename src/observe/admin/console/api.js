// The admin API. The token is kept in this tab only, never in a cookie: requests of other sites do not have it.

const KEY = 'millrace.token';

export class Unauthorised extends Error {}

export const session = {
  get token() {
    return sessionStorage.getItem(KEY);
  },
  set token(value) {
    if (value === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
  },
};

const TIMEOUT_MS = 10_000;

async function call(path, options = {}) {
  const headers = { ...options.headers };
  if (session.token !== null) headers.authorization = `Bearer ${session.token}`;
  const response = await fetch(`../api${path}`, {
    ...options,
    headers,
    credentials: 'omit',
    cache: 'no-store',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status === 401) throw new Unauthorised();
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail ?? `status ${response.status}`);
  return answer;
}

function post(path, body) {
  const headers = { 'content-type': 'application/json' };
  return call(path, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** Exchanges the code of a link for this tab's token. */
async function open(code) {
  session.token = (await post('/console/sessions', { code })).token;
}

async function signOut() {
  // Fails for an expired token, and does not end a token that was typed in.
  await post('/console/sign-out', {}).catch(() => undefined);
  session.token = null;
}

export const api = {
  open,
  signOut,
  /** @param since newest known second of the history  @param after newest known event */
  state: (since, after) => call(`/console?since=${since}&after=${after}`),
  body: (seq) => call(`/console/events/${seq}`),
  list: (what, query) => call(`/${what}?${new URLSearchParams(query)}`),
  search: (query) => post('/search', query),
  files: (sink, before) =>
    call(`/console/files?${new URLSearchParams(before === null ? { sink } : { sink, before })}`),
  timeline: (seq) => call(`/search/${seq}`),
  count: (what) => call(`/${what}/count`),
  replays: () => call('/replays'),
  countReplay: (order) => post('/replays', order),
  startReplay: (id) => post(`/replays/${id}/start`, {}),
  stopReplay: (id) => post(`/replays/${id}/stop`, {}),
  forgetReplay: (id) => post(`/replays/${id}/forget`, {}),
  erasures: () => call('/erasures'),
  requestErasure: (subject) => post('/erasures', subject),
  cancelErasure: (subject) => post('/erasures/cancel', subject),
  retry: (what, selection) => post(`/${what}/retry`, selection),
  drop: (what, selection) => post(`/${what}/drop`, selection),
};
