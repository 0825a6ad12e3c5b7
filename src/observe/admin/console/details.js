import { byId, h, setHidden, setText } from './dom.js';
import * as format from './format.js';
import { wayOf } from './timeline.js';

const LONGEST_BODY = 64 * 1024;

/**
 * Shows everything that is known of one event.
 * @param event as the API gives it
 * @param facts further rows: `[label, text]`
 * @param loadBody asks for its body; null where bodies are not shown
 * @param seq of the event in the journal; null when it is not there
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
  void showWay(seq);
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

/** Of the event that is asked for last: an answer may come late. */
let shown = 0;

async function showWay(seq) {
  shown += 1;
  const own = shown;
  const box = byId('details-way');
  box.replaceChildren();
  if (seq === null) return;
  try {
    const { facts, list } = await wayOf(seq);
    if (own !== shown) return;
    byId('details-facts').append(...factsOf(facts));
    box.replaceChildren(h('h3', { text: 'What became of it' }), list);
  } catch (error) {
    if (own === shown) box.replaceChildren(h('p', { class: 'muted', text: error.message }));
  }
}

function factsOf(rows) {
  return rows
    .filter(([, text]) => text !== null && text !== undefined)
    .flatMap(([label, text]) => [h('dt', { text: label }), h('dd', { text })]);
}

/** A button that looks like a link: the way to the details of a row. */
export function detailsButton(id, open) {
  return h('button', {
    type: 'button',
    class: 'link id',
    text: format.shortId(id),
    title: id,
    'aria-label': `Details of ${id}`,
    onclick: open,
  });
}

/** The exact text, not a pretty one: numbers and order of the keys are the sender's. */
function textOf(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const text = new TextDecoder().decode(bytes.subarray(0, LONGEST_BODY));
  return bytes.length > LONGEST_BODY ? `${text}\n… ${format.bytes(bytes.length)} in all` : text;
}
