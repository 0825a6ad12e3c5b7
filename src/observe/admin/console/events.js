import { api } from './api.js';
import { eventCells, showDetails } from './details.js';
import { byId, cell, fill, h, keyedRows, setText, still } from './dom.js';
import * as format from './format.js';

/** Rows on the page. */
const SHOWN = 25;
const TONES = { accepted: 'quiet', duplicate: 'plain', quarantined: 'warn' };

/** The newest events, newest first; while the page is paused the list does not change. */
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

  /** Number of the newest known event. */
  get newest() {
    return this.#events[0]?.n ?? 0;
  }

  add(state, rate) {
    // Numbers start again with the process.
    const isNew = this.#state !== null && this.#state.startedAt !== state.startedAt;
    const before = isNew ? [] : this.#events;
    // A user was erased: all events are loaded again.
    const isStale = this.#state !== null && this.#state.forgotten !== state.forgotten && !isNew;
    this.#state = state;
    this.#rate = rate;
    this.#events = isStale ? [] : [...state.recent, ...before].slice(0, 200);
    this.#render();
  }

  #render() {
    const wanted = byId('events-filter').value.trim().toLowerCase();
    const found = this.#events.filter((event) => matches(event, wanted)).slice(0, SHOWN);
    const empty = 'No events yet. They appear here as they come in.';
    keyedRows(
      this.#body,
      found,
      ({ n }) => n,
      (event) => this.#create(event),
      { columns: 6, empty },
    );
    const note =
      this.#rate > SHOWN
        ? `The newest of about ${format.rate(this.#rate)} a second; use Pause to stop the list.`
        : '';
    setText(byId('events-note'), note);
  }

  #create(event) {
    const { type, user, size, id } = eventCells(event, () => this.#open(event));
    const received = cell('Received', {}, format.clock(event.received_at));
    const pill = h('span', { class: `pill ${TONES[event.outcome]}`, text: event.outcome });
    return still(h('tr', {}, received, type, cell('Outcome', {}, pill), user, size, id));
  }

  /** Without a journal there is no timeline. */
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

function matches(event, wanted) {
  if (wanted === '') return true;
  return [event.event_type, event.id, event.user_id, event.client_user_id, event.outcome].some((value) =>
    value?.toLowerCase().includes(wanted),
  );
}
