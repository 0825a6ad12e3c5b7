import { byId, cell, emptyRow, fill, h, keyed, setHidden, setText, still } from './dom.js';
import * as format from './format.js';

/** Seconds of the mean rate: single seconds change too much. */
const MEAN_OF = 5;

export function showTiles(state, history) {
  const { journal, sinks, totals, now, startedAt } = state;
  const last = history.slice(-MEAN_OF);
  const mean = (read) => last.reduce((sum, point) => sum + read(point), 0) / Math.max(1, last.length);
  setText(byId('tile-rate'), format.rate(mean(({ accepted }) => accepted)));
  const refused = mean((point) => point.refused);
  setText(byId('tile-rate-note'), refused > 0 ? `and ${format.rate(refused)} refused` : 'none refused');
  const slowest = sinks.toSorted((one, other) => other.backlog - one.backlog)[0];
  const waiting = slowest?.backlog ?? 0;
  setText(byId('tile-waiting'), format.count(waiting));
  setText(
    byId('tile-waiting-note'),
    waiting === 0
      ? 'every sink has caught up'
      : `for ${slowest.sink}, the oldest ${format.duration(slowest.backlogAge)}`,
  );
  count('tile-quarantine', journal.quarantined);
  count('tile-dead', journal.deadLetters);
  const isMemory = journal.maxBytes === 0;
  setText(byId('tile-journal'), format.bytes(journal.bytes));
  setHidden(byId('journal-meter'), isMemory);
  byId('journal-meter').value = isMemory ? 0 : journal.bytes / journal.maxBytes;
  setText(
    byId('tile-journal-note'),
    isMemory
      ? 'in memory'
      : `of ${format.bytes(journal.maxBytes)}, ${format.plural(journal.events, 'event')}`,
  );
  setText(byId('tile-total'), format.count(totals.accepted));
  setText(
    byId('tile-total-note'),
    [
      `in ${format.duration(now - startedAt)}; ${format.plural(totals.duplicates, 'duplicate')}`,
      ...(totals.erased > 0 ? [`${format.count(totals.erased)} of erased users dropped`] : []),
    ].join(', '),
  );
}

/** Connections and refusals. */
export function showReceiving({ connections, refused, refusedSince, refusedLast }) {
  const reasons = Object.entries(refused);
  count(
    'tile-refused',
    reasons.reduce((sum, [, times]) => sum + times, 0),
  );
  const counted =
    reasons.length === 0
      ? 'none'
      : reasons.map(([code, times]) => `${format.count(times)}\u00a0${code}`).join(', ');
  const since = refusedSince === null ? '' : `; since the start at ${format.moment(refusedSince)}`;
  const last =
    reasons.length === 0 || refusedLast === null ? '' : `; the last at ${format.moment(refusedLast)}`;
  setText(byId('tile-refused-note'), `${counted}${since}${last}`);
  const { open, max, evicted, dropped } = connections;
  setText(byId('tile-connections'), format.count(open));
  byId('tile-connections').classList.toggle('attention', dropped > 0);
  const losses = [
    ...(evicted > 0 ? [`${format.count(evicted)} idle ones closed to make room`] : []),
    ...(dropped > 0 ? [`${format.count(dropped)} rejected`] : []),
  ];
  setText(byId('tile-connections-note'), [`of ${format.count(max)}`, ...losses].join('; '));
}

function count(id, value) {
  setText(byId(id), format.count(value));
  byId(id).classList.toggle('attention', value !== 0);
}

const DOING = {
  down: 'is down; its events wait in the journal',
  opening: 'cannot be opened yet',
  stopped: 'is stopped',
};

/** The last error, unless a trouble says the same. */
function errorsOf({ lastError, troubles: own }) {
  return lastError === null || own.some(({ detail }) => detail === lastError) ? [] : [lastError];
}

/** A banner for each trouble. */
function troubles(tone, what, all) {
  return all.map(({ code, detail, since }) => [
    tone,
    `${what}: ${code} since ${format.moment(since)}.`,
    detail,
  ]);
}

/** What is wrong, as `millrace status` says it: tone, title and detail of each. */
export function bannersOf({ ready, state, reloads, receiving, journal, earlier, sinks }) {
  const banners = troubles('bad', 'The journal accepts nothing', journal.troubles ?? []);
  if (!ready && state === 'listening' && banners.length === 0)
    banners.push(['bad', 'Deliveries are refused.', 'Events wait for a sink, or a required sink opens.']);
  if (reloads.error !== null)
    banners.push([
      'warn',
      'The changed config could not be used; the previous one stays in force.',
      reloads.error,
    ]);
  if (journal.damaged > 0)
    banners.push([
      'bad',
      `Damaged: ${format.plural(journal.damaged, 'record')} of the journal.`,
      'What could be read of them is in quarantine. Check the disk.',
    ]);
  const behind = receiving?.receipts?.behindSince ?? null;
  if (behind !== null)
    banners.push([
      'warn',
      `No receipts are given since ${format.moment(behind)}.`,
      'Their log cannot be written.',
    ]);
  for (const sink of sinks) {
    const details = [...errorsOf(sink), ...sink.troubles.map(({ detail }) => detail)];
    if (sink.mode in DOING)
      banners.push(['warn', `Sink ${sink.sink} ${DOING[sink.mode]}.`, details.join('\n')]);
    else banners.push(...troubles('warn', `Sink ${sink.sink} is in trouble`, sink.troubles));
  }
  return [...banners, ...troubles('warn', 'An earlier archive', earlier)];
}

const MODES = {
  running: ['Running', 'good'],
  opening: ['Opening', 'warn'],
  down: ['Down', 'bad'],
  draining: ['Draining', 'warn'],
  stopped: ['Stopped', 'bad'],
};

const COUNTS = ['Delivered / s', 'Backlog', 'Oldest', 'Bytes', 'Retries', 'Dead'];
const SINKS = fill(byId('sinks'), ['Sink', 'State', ...COUNTS, 'Last error'], { number: COUNTS });
const ROUTES = fill(byId('routes'), ['Match', 'To', 'Events', 'Share'], { number: ['Events'] });

/** @param sinks each with `rate`, its deliveries a second */
export function showSinks(sinks) {
  keyed(SINKS, sinks, ({ sink }) => sink, createSink);
}

function createSink(first) {
  const cells = {
    sink: h(
      'th',
      { scope: 'row', class: 'half' },
      h('span', { text: first.sink }),
      ' ',
      h('span', { class: 'muted small wrap' }),
    ),
    mode: cell('State'),
    rate: cell('Delivered / s', { number: true }),
    backlog: cell('Backlog', { number: true }),
    age: cell('Oldest', { number: true }),
    bytes: cell('Bytes', { number: true }),
    retried: cell('Retries', { number: true }),
    dead: cell('Dead', { number: true }),
    error: cell('Last error', { className: 'wrap wide muted lines' }),
  };
  const pill = h('span', { class: 'pill' });
  cells.mode.append(pill);
  return {
    element: h('tr', {}, ...Object.values(cells)),
    update: (sink) => {
      const [mode, modeTone] = MODES[sink.mode] ?? [sink.mode, 'warn'];
      const inTrouble = sink.troubles.length > 0;
      const [label, tone] = inTrouble ? [`${mode}, in trouble`, 'bad'] : [mode, modeTone];
      const wrong = [
        ...errorsOf(sink),
        ...sink.troubles.map(({ code, detail, since }) => `${code} since ${format.moment(since)}: ${detail}`),
      ];
      setText(
        cells.sink.lastElementChild,
        `${sink.type ?? ''}${sink.required === false ? ', best effort' : ''}`,
      );
      setText(pill, label);
      pill.className = `pill ${tone}`;
      setText(cells.rate, format.rate(sink.rate));
      setText(cells.backlog, format.count(sink.backlog));
      setText(cells.age, sink.backlog === 0 ? '–' : format.duration(sink.backlogAge));
      setText(cells.bytes, sink.backlog === 0 ? '–' : format.bytes(sink.backlogBytes));
      setText(cells.retried, format.count(sink.retried));
      setText(cells.dead, format.count(sink.dead));
      setText(cells.error, wrong.length === 0 ? '–' : wrong.join('\n'));
      cells.error.classList.toggle('nothing', wrong.length === 0);
    },
  };
}

export function showRoutes({ routes, unrouted, reloads, startedAt }) {
  const total = routes.reduce((sum, { events }) => sum + events, unrouted);
  const withShare = (route) => ({ ...route, share: total === 0 ? null : route.events / total });
  const rows = routes.map((route, index) => withShare({ ...route, index }));
  if (unrouted > 0)
    rows.push(withShare({ index: 'none', match: ['anything else'], to: [], events: unrouted }));
  keyed(
    ROUTES,
    rows,
    ({ index, match, to }) => JSON.stringify([index, match, to]),
    (route) => {
      const events = cell('Events', { number: true });
      const bar = h('meter', { min: '0', max: '1', class: 'share', 'aria-hidden': 'true' });
      const share = h('span', { class: 'muted small' });
      const match = h(
        'th',
        { scope: 'row', class: 'wrap' },
        ...route.match.map((prefix) => h('code', { text: prefix })),
      );
      const targets = route.to.length === 0 ? ['nowhere'] : route.to.map((text) => h('code', { text }));
      const to = cell('To', { className: 'wrap wide' }, ...targets);
      const shareCell = cell(
        'Share',
        { className: 'half' },
        h('span', { class: 'bar-and-text' }, bar, share),
      );
      return {
        element: h('tr', {}, match, to, events, shareCell),
        update: (now) => {
          setText(events, format.count(now.events));
          bar.value = now.share ?? 0;
          setText(share, now.share === null ? '–' : format.percent(now.share));
        },
      };
    },
  );
  if (rows.length === 0 && ROUTES.childElementCount === 0) ROUTES.append(emptyRow(4, 'No routes'));
  const since =
    reloads.succeeded > 0
      ? `the reload at ${format.clock(reloads.lastSuccess)}`
      : `the start at ${format.clock(startedAt)}`;
  setText(byId('routes-since'), since);
}

const KINDS = {
  erasure: 'Erasure',
  replay: 'Replay',
  backfill: 'Backfill',
  reload: 'Reload',
  export: 'Export',
};
const STATES = { waiting: 'warn', running: 'good', done: 'good', failed: 'bad', interrupted: 'warn' };

export function showActivities({ activities, now }) {
  const list = byId('activities');
  const items = activities.length === 0 ? [{ none: true, id: 'none' }] : activities;
  keyed(
    list,
    items,
    ({ kind, id }) => `${kind} ${id}`,
    (first) => {
      if (first.none) {
        return still(h('li', { class: 'muted', text: 'No erasure, replay or backfill is running.' }));
      }
      const pill = h('span', { class: 'pill' });
      const bar = h('progress', {});
      const note = h('span', { class: 'muted small' });
      const title = h('span', { class: 'wrap' });
      return {
        element: h(
          'li',
          {},
          h('div', { class: 'line' }, h('b', { text: KINDS[first.kind] ?? first.kind }), title, pill),
          bar,
          note,
        ),
        update: (activity) => {
          setText(title, activity.title);
          setText(pill, activity.state);
          pill.className = `pill ${STATES[activity.state] ?? 'warn'}`;
          if (activity.total === null || activity.total === 0) bar.removeAttribute('value');
          else bar.value = activity.done / activity.total;
          setHidden(bar, activity.state !== 'running');
          const of = activity.total === null ? '' : ` of ${format.count(activity.total)}`;
          const parts = [`${format.count(activity.done)}${of} ${activity.unit}`];
          if (activity.state === 'running')
            parts.push(`for ${format.duration(Math.max(0, now - activity.startedAt))}`);
          else parts.push(format.moment(activity.updatedAt));
          if (activity.detail !== null) parts.push(activity.detail);
          setText(note, parts.join(' · '));
        },
      };
    },
  );
}
