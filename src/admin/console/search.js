import { api } from './api.js';
import { detailsButton, showDetails } from './details.js';
import { byId, cell, emptyRow, h, setHidden, setText } from './dom.js';
import * as format from './format.js';

const TONES = { settled: 'quiet', waiting: 'plain', nowhere: 'plain', dead: 'warn', quarantined: 'warn' };
const PAGE = 50;
/** Milliseconds until a question is asked again whose answer was not whole. */
const AGAIN = 500;

function value(name) {
  return byId(`search-${name}`).value.trim();
}

/** Looks for events of the journal, and of what is set aside. */
export class Search {
  #form = byId('search-form');
  #body = byId('search-table').tBodies[0];
  #more = byId('search-more');
  #query = null;
  #next = null;
  #count = 0;
  #asked = 0;
  /** The last answer that the rows were made of. */
  #shown = '';
  #payloads = false;

  constructor() {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#query = this.#read();
      void this.#ask();
    });
    this.#more.addEventListener('click', () => void this.#ask(this.#next));
  }

  update(state) {
    this.#payloads = state.payloads;
  }

  refresh() {
    byId('search-id').focus();
  }

  #read() {
    const query = { limit: PAGE };
    for (const name of ['id', 'user', 'type', 'state']) if (value(name) !== '') query[name] = value(name);
    for (const name of ['since', 'until'])
      if (value(name) !== '') query[name] = new Date(value(name)).toISOString();
    return query;
  }

  async #ask(before = null) {
    this.#asked += 1;
    const asked = this.#asked;
    // Rows of the answers before this one: they stay, however often it is asked for.
    let kept = before === null ? 0 : this.#count;
    const end = kept + PAGE;
    for (;;) {
      let page;
      try {
        page = await api.search({ ...this.#query, ...(before === null ? {} : { before }) });
      } catch (error) {
        if (asked === this.#asked) setText(byId('search-note'), `The search failed: ${error.message}`);
        return;
      }
      if (asked !== this.#asked) return;
      this.#show(page, kept);
      // A full page, too, gives way to newer events while the index is being made.
      if (page.searched < page.of) {
        await new Promise((resolve) => {
          setTimeout(resolve, AGAIN);
        });
        if (asked !== this.#asked) return;
        continue;
      }
      if (page.next === null || this.#count >= end) return;
      // Too little was found in the time that one answer takes, and there is more to look through.
      [before, kept] = [page.next, this.#count];
    }
  }

  /** @param kept how many rows stand before those of this answer */
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
    setText(
      byId('search-note'),
      `${format.plural(this.#count, 'event')}${next === null ? '' : ' and more'}${whole}`,
    );
  }

  #row(event) {
    const received = cell('Received');
    setText(received, format.moment(event.received_at));
    const type = cell('Type', { className: 'type' });
    type.append(h('code', { text: event.event_type === '' ? '(no type)' : event.event_type }));
    const state = cell('State');
    state.append(h('span', { class: `pill ${TONES[event.state]}`, text: event.state }));
    const user = cell('User', { className: 'id secondary' });
    setText(user, format.shortId(event.user_id ?? event.client_user_id ?? '–'));
    const size = cell('Size', { number: true, className: 'secondary' });
    setText(size, format.bytes(event.bytes));
    const id = cell('Id', { className: 'last' });
    id.append(detailsButton(event.id, () => this.#open(event)));
    return h('tr', {}, received, type, state, user, size, id);
  }

  #open(event) {
    const isJournaled = event.state !== 'dead' && event.state !== 'quarantined';
    const load = this.#payloads && isJournaled ? () => api.body(event.key) : null;
    showDetails(event, [['State', event.state]], load, isJournaled ? event.key : null);
  }
}
