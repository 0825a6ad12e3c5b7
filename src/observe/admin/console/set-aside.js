import { api } from './api.js';
import { eventCells, showDetails } from './details.js';
import { ask, toast, toastResult } from './dialog.js';
import { byId, cell, h, keyedRows, rowButton, setHidden, setText, still, table } from './dom.js';
import * as format from './format.js';
import { typesOf } from './replay.js';

const PAGE = 25;

/** The differences between the two lists. */
export const QUARANTINE = {
  path: 'quarantine',
  tab: 'quarantine',
  empty: 'Quarantine is empty: every authentic event was valid.',
  one: 'event',
  again: 'Each is validated again by the current config; invalid ones stay here.',
  why: ({ reasons }) => reasons.map(({ code, detail }) => ({ code, detail })),
  where: () => null,
  at: ({ received_at: at }) => at,
  count: ({ journal }) => journal.quarantined,
};

export const DEAD_LETTERS = {
  path: 'dead-letters',
  tab: 'dead-letters',
  empty: 'No dead letters: no sink has permanently refused an event.',
  one: 'dead letter',
  again: 'Each goes to its sink again; refused ones come back.',
  why: ({ code, reason }) => [{ code, detail: reason }],
  where: ({ sink, destination }) => (destination === null ? sink : `${sink}:${destination}`),
  at: ({ died_at: at }) => at,
  count: ({ journal }) => journal.deadLetters,
};

/** Quarantine or dead letters, with buttons to retry and drop. */
export class SetAside {
  #kind;
  #panel;
  #body = h('tbody', {});
  #note = h('span', { class: 'muted small' });
  #more = h('button', { type: 'button', text: 'Show more', hidden: true });
  #all;
  #items = [];
  #count = null;
  #payloads = false;
  #loading = false;

  constructor(kind) {
    this.#kind = kind;
    this.#panel = byId(kind.tab);
    this.#all = [
      h('button', { type: 'button', text: 'Retry all…', onclick: () => this.#retryAll() }),
      h('button', {
        type: 'button',
        class: 'danger',
        text: 'Drop all…',
        onclick: () => this.#drop({}, format.plural(this.#count ?? 0, kind.one)),
      }),
    ];
    this.#more.addEventListener('click', () => this.#load(this.#items.at(-1)?.key ?? 0));
    this.#panel.append(
      h('div', { class: 'toolbar' }, this.#note, h('span', { class: 'buttons' }, ...this.#all)),
      table({ class: 'compact' }, this.#columns, this.#body),
      this.#more,
    );
  }

  get #hasSink() {
    return this.#kind.where({ sink: '', destination: null }) !== null;
  }

  get #columns() {
    return ['Since', 'Type', ...(this.#hasSink ? ['Sink'] : []), 'Why', 'User', 'Id', ''];
  }

  /** Loads the list again when its size has changed and its tab is open. */
  update(state) {
    this.#payloads = state.payloads;
    const count = this.#kind.count(state);
    const badge = byId(`tab-${this.#kind.tab}`).querySelector('.count');
    setText(badge, format.shortCount(count));
    setHidden(badge, count === 0);
    if (count === this.#count || this.#panel.hidden) return;
    this.#count = count;
    void this.#load(0);
  }

  /** The tab was opened. */
  refresh() {
    this.#count = null;
  }

  async #load(after) {
    if (this.#loading) return;
    this.#loading = true;
    try {
      const page = await api.list(this.#kind.path, { limit: PAGE, after });
      this.#items = after === 0 ? page : [...this.#items, ...page];
      setHidden(this.#more, page.length < PAGE);
      this.#render();
    } catch (error) {
      toast(`The list could not be read: ${error.message}`);
      this.#count = null;
    } finally {
      this.#loading = false;
    }
  }

  #render() {
    keyedRows(
      this.#body,
      this.#items,
      ({ key }) => key,
      (item) => this.#create(item),
      { columns: this.#columns.length, empty: this.#kind.empty },
    );
    for (const button of this.#all) button.disabled = this.#items.length === 0;
    const shown = this.#items.length;
    setText(
      this.#note,
      shown === 0 ? '' : `${format.count(shown)} of ${format.plural(this.#count ?? shown, this.#kind.one)}`,
    );
  }

  #create(item) {
    const { key } = item;
    const name = `${this.#kind.one} ${item.id}`;
    const { type, user, id } = eventCells(item, () => this.#open(item));
    const since = cell('Since', {}, format.moment(this.#kind.at(item)));
    const reasons = this.#kind
      .why(item)
      .map(({ code, detail }) =>
        h('div', {}, h('code', { text: code }), ' ', h('span', { class: 'muted', text: detail })),
      );
    const why = cell('Why', { className: 'why' }, ...reasons);
    const acts = h(
      'td',
      { class: 'acts' },
      rowButton('Retry', '', name, () => this.#retry({ keys: [key] }, 'it')),
      rowButton('Drop', 'danger', name, () => this.#drop({ keys: [key] }, `this ${this.#kind.one}`)),
    );
    const sink = this.#hasSink ? [cell('Sink', {}, h('code', { text: this.#kind.where(item) }))] : [];
    return still(h('tr', {}, since, type, ...sink, why, user, id, acts));
  }

  #open(item) {
    const facts = [
      ['Sink', this.#kind.where(item)],
      ['Attempts', item.attempts === undefined ? null : format.count(item.attempts)],
      ...this.#kind.why(item).map(({ code, detail }) => ['Why', `${code}: ${detail}`]),
    ];
    showDetails(item, facts, this.#payloads ? () => this.#bodyOf(item.key) : null);
  }

  async #bodyOf(key) {
    const [item] = await api.list(this.#kind.path, { keys: key, limit: 1, bodies: true });
    if (item === undefined) throw new Error('It is no longer here.');
    return item;
  }

  /** Counts the events by type for the confirmation. */
  async #retryAll() {
    let counted;
    try {
      counted = await api.count(this.#kind.path);
    } catch (error) {
      return toast(`They could not be counted: ${error.message}`);
    }
    const { events, isAll } = counted;
    const many = `${isAll ? '' : 'more than '}${format.plural(events, this.#kind.one)}`;
    const again = `${typesOf(counted)}. ${this.#kind.again}`;
    if (await ask(`Retry ${many}?`, again, 'Retry', 'Do not')) await this.#retry({}, 'all of them');
  }

  async #retry(selection, what) {
    await this.#act(async () => {
      const { retried, kept } = await api.retry(this.#kind.path, selection);
      const stayed =
        kept === 0 ? '' : `; ${format.count(kept)} stayed, because nothing has changed for ${what}`;
      return `${format.plural(retried, this.#kind.one)} retried${stayed}.`;
    });
  }

  async #drop(selection, what) {
    const sure = await ask(
      `Drop ${what}?`,
      'This deletes permanently: dropped events are not delivered anywhere.',
      'Drop',
    );
    if (!sure) return;
    await this.#act(async () => {
      const { dropped } = await api.drop(this.#kind.path, selection);
      return `${format.plural(dropped, this.#kind.one)} dropped.`;
    });
  }

  async #act(work) {
    await toastResult(work);
    this.#count = null;
    await this.#load(0);
    // The row that had the focus may be gone.
    if (document.activeElement === document.body) this.#panel.focus();
  }
}
