import { api } from './api.js';
import { h } from './dom.js';
import * as format from './format.js';

const STATES = {
  delivered: ['good', 'delivered'],
  passed: ['plain', 'done: delivered, or a dead letter that was dropped or retried since'],
  waiting: ['warn', 'waiting'],
  dead: ['bad', 'dead letter'],
};

/** The timeline of an event, and facts for its details. */
export async function timelineOf(seq) {
  const {
    event,
    journaled_at: journaled,
    trace_id: trace,
    replay_id: replay,
    route,
    sinks,
  } = await api.timeline(seq);
  const received = Date.parse(event.received_at);
  const facts = [
    ['Trace', trace],
    ['Replay', replay],
    ['Route now', route === null ? 'none matches' : `${route.index + 1}, by ${route.match}`],
  ];
  const steps = [
    step('good', 'Received', received, null, `from ${event.source}`),
    step('good', 'Journaled', dateOf(journaled), received, `as number ${format.count(seq)}, on disk`),
    ...sinks.flatMap((sink) => stepsOf(sink, received)),
    ...(sinks.length === 0
      ? [step('plain', 'Goes to no sink', null, received, 'by the routes when it was accepted')]
      : []),
  ];
  return { facts, list: h('ol', { class: 'timeline', 'aria-label': 'Timeline' }, ...steps) };
}

function stepsOf({ sink, destination, state, at, retries, reason }, received) {
  const name = destination === null ? sink : `${sink}:${destination}`;
  const [tone, text] = STATES[state];
  const failed = retries.map((retry) =>
    step('warn', name, dateOf(retry.at), received, `failed attempt: ${retry.reason ?? 'no reason given'}`),
  );
  return [...failed, step(tone, name, dateOf(at), received, reason === null ? text : `${text}: ${reason}`)];
}

function step(tone, name, at, since, text) {
  const time =
    at === null
      ? ''
      : format.clock(at) + (since === null ? '' : ` (+${format.duration(Math.max(0, at - since))})`);
  return h(
    'li',
    { class: tone },
    h('b', { text: name }),
    ' ',
    h('span', { class: 'muted', text: time }),
    ' ',
    h('span', { class: 'wrap', text }),
  );
}

function dateOf(text) {
  return text === null ? null : Date.parse(text);
}
