import { api, session, Unauthorised } from './api.js';
import { Chart } from './chart.js';
import { byId, h, setHidden, setText } from './dom.js';
import { RecentEvents } from './events.js';
import { Files } from './files.js';
import * as format from './format.js';
import { DEAD_LETTERS, SetAside, QUARANTINE } from './set-aside.js';
import { bannersOf, showActivities, showReceiving, showRoutes, showSinks, showTiles } from './overview.js';
import { Erasures } from './erasure.js';
import { Replays } from './replay.js';
import { Schema } from './schema.js';
import { Search } from './search.js';
import { Tabs } from './tabs.js';

/** Milliseconds between two requests. */
const EVERY_MS = 1000;
/** Seconds of the history that the page keeps. */
const HISTORY = 310;
/** Colours of sinks; further sinks start again with the first. */
const SINK_COLORS = ['s1', 's2', 's3', 's4', 's5', 's6'];

const charts = {
  rate: new Chart(byId('chart-rate'), { title: 'Events a second', format: format.rate }),
  backlog: new Chart(byId('chart-backlog'), { title: 'Backlog by sink', format: format.count }),
};
const recent = new RecentEvents();
const lists = {
  schema: new Schema(),
  files: new Files(),
  search: new Search(),
  quarantine: new SetAside(QUARANTINE),
  'dead-letters': new SetAside(DEAD_LETTERS),
  replay: new Replays(),
  erasure: new Erasures(),
};
const tabs = new Tabs(document.querySelector('[role=tablist]'), (panel) => {
  lists[panel]?.refresh();
  if (latest !== null) lists[panel]?.update(latest);
});

let history = [];
let latest = null;
let paused = false;
/** When the last answer came, in milliseconds since the epoch. */
let answered = null;
let failure = null;
let asking = false;

async function refresh() {
  // Two requests at once would return the same seconds.
  if (asking) return;
  asking = true;
  try {
    const state = await api.state(history.at(-1)?.at ?? 0, recent.newest);
    setHidden(byId('login'), true);
    setHidden(byId('console'), false);
    setHidden(byId('pause'), false);
    setHidden(byId('sign-out'), session.token === null);
    // After a restart numbers start again: the next request loads everything.
    if (latest !== null && latest.startedAt !== state.startedAt)
      history = history.filter(({ at }) => at < state.startedAt);
    // Points of the future are from before the clock was set back.
    history = [...history.filter(({ at }) => at <= state.now + EVERY_MS), ...state.history].slice(-HISTORY);
    failure = null;
    answered = Date.now();
    latest = state;
    show(state);
  } catch (error) {
    if (error instanceof Unauthorised) showLogin();
    else failure = error;
  } finally {
    asking = false;
  }
  showConnection();
}

function show(state) {
  const last = history.at(-1);
  showTiles(state, history);
  showReceiving(state.receiving);
  charts.rate.update(history, RATES, state.now);
  const backlogs = state.sinks.map(({ sink }, index) => ({
    name: sink,
    color: SINK_COLORS[index % SINK_COLORS.length],
    read: (point) => point.sinks[sink]?.backlog ?? 0,
  }));
  charts.backlog.update(history, backlogs, state.now);
  showSinks(state.sinks.map((sink) => ({ ...sink, rate: last?.sinks[sink.sink]?.delivered ?? 0 })));
  showRoutes(state);
  showActivities(state);
  setHidden(byId('tab-search'), state.acknowledge !== 'journaled');
  setHidden(byId('tab-replay'), !state.canReplay);
  recent.add(state, last?.accepted ?? 0);
  for (const list of Object.values(lists)) list.update(state);
}

const RATES = [
  { name: 'accepted', color: 's1', fill: true, read: ({ accepted }) => accepted },
  { name: 'quarantined', color: 's3', read: ({ quarantined }) => quarantined },
  { name: 'refused', color: 's5', read: ({ refused }) => refused },
];

const STATES = { idle: 'Starting', draining: 'Draining', closed: 'Stopped' };

function showConnection() {
  const pill = byId('state');
  const [text, tone] =
    failure !== null
      ? ['No answer', 'bad']
      : latest === null
        ? ['Signed out', 'plain']
        : latest.ready
          ? ['Ready', 'good']
          : [STATES[latest.state] ?? 'Not ready', 'warn'];
  setText(pill, text);
  pill.className = `pill ${tone}`;
  document.title = text === 'Ready' ? 'millrace' : `${text} – millrace`;
  setText(byId('version'), latest === null ? '' : latest.version);
  setText(
    byId('updated'),
    answered === null ? '' : `${paused ? 'Paused at' : 'Updated'} ${format.clock(answered)}`,
  );
  showBanners();
}

function showBanners() {
  const since = answered === null ? '' : ` since ${format.clock(answered)}`;
  const lost = `The receiver does not answer${since}; the console keeps trying.`;
  const banners =
    failure !== null ? [['bad', lost, failure.message]] : latest === null ? [] : bannersOf(latest);
  const text = JSON.stringify(banners);
  const box = byId('banners');
  // Screen readers would read a replaced alert each second.
  if (box.dataset.shown === text) return;
  box.dataset.shown = text;
  box.replaceChildren(
    ...banners.map(([tone, title, detail]) =>
      h(
        'div',
        { class: `banner ${tone}` },
        h('b', { text: title }),
        h('span', { class: 'wrap lines', text: detail }),
      ),
    ),
  );
}

/** @param why an earlier token was not accepted; '' without one */
function showLogin(why = session.token === null ? '' : 'That token was not accepted.') {
  session.token = null;
  latest = null;
  failure = null;
  history = [];
  setHidden(byId('console'), true);
  setHidden(byId('pause'), true);
  setHidden(byId('sign-out'), true);
  if (!byId('login').hidden && why === '') return;
  setText(byId('login-error'), why);
  setHidden(byId('login'), false);
  byId('token').focus();
}

byId('login').addEventListener('submit', (event) => {
  event.preventDefault();
  session.token = byId('token').value.trim();
  byId('token').value = '';
  void refresh();
});

byId('sign-out').addEventListener('click', () => {
  void api.signOut().then(() => {
    setHidden(byId('login'), true);
    return refresh();
  });
});

function togglePause() {
  paused = !paused;
  byId('pause').setAttribute('aria-pressed', String(paused));
  setText(byId('pause'), paused ? 'Resume' : 'Pause');
  showConnection();
  if (!paused) void refresh();
}

byId('pause').addEventListener('click', togglePause);
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.matches('input, textarea, select');
  if (event.key === 'p' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey && latest !== null)
    togglePause();
});

for (const link of document.querySelectorAll('[data-tab]')) {
  link.addEventListener('click', (event) => {
    event.preventDefault();
    const panel = link.dataset.tab;
    tabs.open(panel);
    byId(`tab-${panel}`).focus();
  });
}

/** One request after the other, and none while the page is hidden: the server keeps the history. */
async function keepAsking() {
  for (;;) {
    const isWaiting = !byId('login').hidden;
    if (!paused && !document.hidden && !isWaiting) await refresh();
    await new Promise((resolve) => {
      setTimeout(resolve, EVERY_MS);
    });
  }
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden && !paused && byId('login').hidden) void refresh();
});

/** Signs in with the link of `millrace console`, and removes the used code from the address. */
async function openLink() {
  const [, code] = /^#code=(.+)$/.exec(location.hash) ?? [];
  if (code === undefined) return;
  window.history.replaceState(null, '', location.pathname);
  try {
    await api.open(code);
  } catch (error) {
    if (!(error instanceof Unauthorised)) failure = error;
    else if (session.token === null) showLogin('That link was already used, or has expired.');
    showConnection();
  }
}

// A link that is pasted into an open tab changes only the hash.
window.addEventListener('hashchange', () => {
  void openLink().then(() => (session.token === null ? undefined : refresh()));
});

await openLink();
void keepAsking();
