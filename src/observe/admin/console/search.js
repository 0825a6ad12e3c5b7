import { api } from './api.js';
import { eventCells, showDetails } from './details.js';
import { byId, cell, emptyRow, form, h, setHidden, setText, table } from './dom.js';
import * as format from './format.js';

const TONES = { settled: 'quiet', waiting: 'plain', nowhere: 'plain', dead: 'warn', quarantined: 'warn' };
const PAGE = 50;
/** Milliseconds before an incomplete answer is asked for again. */
const AGAIN_MS = 500;

const COLUMNS = ['Received', 'Type', 'State', 'User', 'Size', 'Id'];
const CLASSES = { number: ['Size'], secondary: ['User', 'Size'] };
const STATES = {
  '': 'any in the journal',
  waiting: 'waiting for a sink',
  settled: 'done at all its sinks',
  nowhere: 'goes to no sink',
  dead: 'dead letter',
  quarantined: 'quarantined',
};
const TEXT = { type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: '1024' };
const TIME = { type: 'datetime-local', step: '1' };
/** Fields of the form: name in the query, label, input. */
const FIELDS = [
  ['id', 'Delivery id', h('input', TEXT)],
  ['user', 'User or client user', h('input', TEXT)],
  ['type', 'Type begins with', h('input', TEXT)],
  ['since', 'Received from', h('input', TIME)],
  ['until', 'until', h('input', TIME)],
  [
    'state',
    'State',
    h('select', {}, ...Object.entries(STATES).map(([value, text]) => h('option', { value, text }))),
  ],
];

/** Searches events of the journal, quarantine and dead letters. */
export class Search {
  #note = h('p', { id: 'search-note', class: 'muted small', role: 'status' });
  #body = h('tbody');
  #more = h('button', { type: 'button', hidden: true, text: 'Show more' });
  #query = null;
  #next = null;
  #count = 0;
  #asked = 0;
  /** The answer that is shown. */
  #shown = '';
  #payloads = false;

  constructor() {
    const asking = form(
      { role: 'search', 'aria-label': 'Events of the journal' },
      () => {
        this.#query = this.#read();
        void this.#ask();
      },
      ...FIELDS.map(([name, label, input]) => {
        input.id = `search-${name}`;
        return h('label', {}, label, input);
      }),
      h('button', { type: 'submit', class: 'primary', text: 'Search' }),
    );
    this.#more.addEventListener('click', () => void this.#ask(this.#next));
    const found = { class: 'compact', id: 'search-table', 'aria-label': 'Events found' };
    byId('search').append(asking, this.#note, table(found, COLUMNS, this.#body, CLASSES), this.#more);
  }

  update(state) {
    this.#payloads = state.payloads;
  }

  refresh() {
    byId('search-id').focus();
  }

  #read() {
    const query = { limit: PAGE };
    for (const [name, , { value, type }] of FIELDS)
      if (value.trim() !== '')
        query[name] = type === TIME.type ? new Date(value).toISOString() : value.trim();
    return query;
  }

  async #ask(before = null) {
    this.#asked += 1;
    const asked = this.#asked;
    // Rows of earlier pages, which stay.
    let kept = before === null ? 0 : this.#count;
    const end = kept + PAGE;
    for (;;) {
      let page;
      try {
        page = await api.search({ ...this.#query, ...(before === null ? {} : { before }) });
      } catch (error) {
        if (asked === this.#asked) setText(this.#note, `The search failed: ${error.message}`);
        return;
      }
      if (asked !== this.#asked) return;
      this.#show(page, kept);
      // While the index is being built, also a full page changes.
      if (page.searched < page.of) {
        await new Promise((resolve) => {
          setTimeout(resolve, AGAIN_MS);
        });
        if (asked !== this.#asked) return;
        continue;
      }
      if (page.next === null || this.#count >= end) return;
      // The search ended early: it continues with the next page.
      [before, kept] = [page.next, this.#count];
    }
  }

  /** @param kept number of rows before those of this answer */
  #show({ events, searched, of, next }, kept) {
    this.#count = kept + events.length;
    this.#next = next;
    const shown = JSON.stringify([kept, events]);
    if (shown !== this.#shown || this.#count === 0) {
      for (const row of [...this.#body.rows].slice(kept)) row.remove();
      this.#body.append(...events.map((event) => this.#row(event)));
    }
    this.#shown = shown;
    if (this.#count === 0) this.#body.append(emptyRow(6, 'No event is like that.'));
    setHidden(this.#more, next === null);
    const whole = searched >= of ? '' : `, in ${format.count(searched)} of ${format.count(of)} so far`;
    setText(this.#note, `${format.plural(this.#count, 'event')}${next === null ? '' : ' and more'}${whole}`);
  }

  #row(event) {
    const { type, user, size, id } = eventCells(event, () => this.#open(event));
    const received = cell('Received', {}, format.moment(event.received_at));
    const pill = h('span', { class: `pill ${TONES[event.state]}`, text: event.state });
    return h('tr', {}, received, type, cell('State', {}, pill), user, size, id);
  }

  #open(event) {
    const isJournaled = event.state !== 'dead' && event.state !== 'quarantined';
    const load = this.#payloads && isJournaled ? () => api.body(event.key) : null;
    showDetails(event, [['State', event.state]], load, isJournaled ? event.key : null);
  }
}
