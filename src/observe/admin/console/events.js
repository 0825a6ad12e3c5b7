import { api } from './api.js';
import { detailsButton, showDetails } from './details.js';
import { byId, cell, fill, h, keyed, setText } from './dom.js';
import * as format from './format.js';

/** Rows on the page. */
const SHOWN = 25;
const TONES = { accepted: 'quiet', duplicate: 'plain', quarantined: 'warn' };

/** The newest events. What came last stands first; while the page is paused the list stands still. */
export class RecentEvents {
  #body = fill(byId('events-table'), ['Received', 'Type', 'Outcome', 'User', 'Size', 'Id'], {
    number: ['Size'],
    secondary: ['User', 'Size'],
  });
  #events = [];
  #state = null;
  #rate = 0;

  constructor() {
    byId('events-filter').addEventListener('input', () => this.#render());
  }

  /** Number of the newest event that is known. */
  get newest() {
    return this.#events[0]?.n ?? 0;
  }

  add(state, rate) {
    // The numbers begin anew with the process.
    const isNew = this.#state !== null && this.#state.startedAt !== state.startedAt;
    const before = isNew ? [] : this.#events;
    // Users were erased: what is known may be theirs, so all of it is asked for anew.
    const isStale = this.#state !== null && this.#state.forgotten !== state.forgotten && !isNew;
    this.#state = state;
    this.#rate = rate;
    this.#events = isStale ? [] : [...state.recent, ...before].slice(0, 200);
    this.#render();
  }

  #render() {
    const wanted = byId('events-filter').value.trim().toLowerCase();
    const found = this.#events.filter((event) => matches(event, wanted)).slice(0, SHOWN);
    const rows = found.length === 0 ? [{ none: true, n: 'none' }] : found;
    keyed(
      this.#body,
      rows,
      ({ n }) => n,
      (event) => (event.none ? createNone() : this.#create(event)),
    );
    const note =
      this.#rate > SHOWN
        ? `The newest of about ${format.rate(this.#rate)} a second; use Pause to stop the list.`
        : '';
    setText(byId('events-note'), note);
  }

  #create(event) {
    const type = cell('Type', { className: 'type' });
    const outcome = cell('Outcome');
    const id = cell('Id', { className: 'last' });
    type.append(h('code', { text: event.event_type === '' ? '(no type)' : event.event_type }));
    outcome.append(h('span', { class: `pill ${TONES[event.outcome]}`, text: event.outcome }));
    id.append(detailsButton(event.id, () => this.#open(event)));
    const user = cell('User', { className: 'id secondary' });
    setText(user, format.shortId(event.user_id ?? event.client_user_id ?? '–'));
    const received = cell('Received');
    setText(received, format.clock(event.received_at));
    const size = cell('Size', { number: true, className: 'secondary' });
    setText(size, format.bytes(event.bytes));
    return { element: h('tr', {}, received, type, outcome, user, size, id), update: () => {} };
  }

  /** Without a journal nothing can be looked up. */
  get #isJournaled() {
    return this.#state?.acknowledge === 'journaled';
  }

  #open(event) {
    const facts = [
      ['Source', event.source],
      ['Outcome', event.outcome],
      ['In the journal', event.seq === null ? null : `number ${format.count(event.seq)}`],
    ];
    const canLoad = this.#state?.payloads === true && event.seq !== null;
    showDetails(
      event,
      facts,
      canLoad ? () => api.body(event.seq) : null,
      this.#isJournaled ? event.seq : null,
    );
  }
}

function createNone() {
  const text = 'No events yet. They appear here as they come in.';
  return { element: h('tr', { class: 'empty' }, h('td', { colspan: 6, text })), update: () => {} };
}

function matches(event, wanted) {
  if (wanted === '') return true;
  return [event.event_type, event.id, event.user_id, event.client_user_id, event.outcome].some((value) =>
    value?.toLowerCase().includes(wanted),
  );
}
