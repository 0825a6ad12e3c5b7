import { byId, cell, h, setHidden, setText } from './dom.js';
import * as format from './format.js';
import { timelineOf } from './timeline.js';

const LONGEST_BODY = 64 * 1024;

/**
 * Opens the details of an event.
 * @param event from the API
 * @param facts more rows: `[label, text]`
 * @param loadBody loads the body; null when bodies are not shown
 * @param seq of the event in the journal; null without one
 */
export function showDetails(event, facts, loadBody, seq = null) {
  const dialog = byId('details');
  setText(byId('details-title'), event.event_type === '' ? 'Event without a type' : event.event_type);
  const rows = [
    ['Id', event.id],
    ['Received', new Date(event.received_at).toISOString()],
    ['Team', event.team_id],
    ['User', event.user_id],
    ['Client user', event.client_user_id],
    ['Size', `${format.count(event.bytes)} bytes`],
    ...facts,
  ];
  byId('details-facts').replaceChildren(...factsOf(rows));
  void showTimeline(seq);
  const body = byId('details-body');
  const button = h('button', { type: 'button', text: 'Show the body' });
  setText(body, '');
  setHidden(body, true);
  byId('details-load').replaceChildren(...(loadBody === null ? [] : [button]));
  button.addEventListener('click', async () => {
    button.remove();
    setHidden(body, false);
    try {
      setText(body, textOf((await loadBody()).body_base64));
    } catch (error) {
      setText(body, error.message);
    }
    body.focus();
  });
  dialog.showModal();
}

/** Number of the last request: an answer to an earlier one is ignored. */
let shown = 0;

async function showTimeline(seq) {
  shown += 1;
  const own = shown;
  const box = byId('details-timeline');
  box.replaceChildren();
  if (seq === null) return;
  try {
    const { facts, list } = await timelineOf(seq);
    if (own !== shown) return;
    byId('details-facts').append(...factsOf(facts));
    box.replaceChildren(h('h3', { text: 'Timeline' }), list);
  } catch (error) {
    if (own === shown) box.replaceChildren(h('p', { class: 'muted', text: error.message }));
  }
}

function factsOf(rows) {
  return rows
    .filter(([, text]) => text !== null && text !== undefined)
    .flatMap(([label, text]) => [h('dt', { text: label }), h('dd', { text })]);
}

/** The cells of an event that all its tables have, by name; the id opens the details. */
export function eventCells(event, open) {
  const button = h('button', {
    type: 'button',
    class: 'link id',
    text: format.shortId(event.id),
    title: event.id,
    'aria-label': `Details of ${event.id}`,
    onclick: open,
  });
  const user = format.shortId(event.user_id ?? event.client_user_id ?? '–');
  return {
    type: cell('Type', { className: 'type' }, h('code', { text: event.event_type || '(no type)' })),
    user: cell('User', { className: 'id secondary' }, user),
    size: cell('Size', { number: true, className: 'secondary' }, format.bytes(event.bytes)),
    id: cell('Id', { className: 'last' }, button),
  };
}

/** The exact text of the sender, not formatted. */
function textOf(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const text = new TextDecoder().decode(bytes.subarray(0, LONGEST_BODY));
  return bytes.length > LONGEST_BODY ? `${text}\n… ${format.bytes(bytes.length)} in all` : text;
}
