import { api } from './api.js';
import { ask, toastResult } from './dialog.js';
import { byId, cell, form, h, keyedRows, setText, still, table } from './dom.js';
import * as format from './format.js';

const WAITING = ['Request', 'Whose', 'Team', 'Due', 'State', ''];
/** Milliseconds between two loads while the tab is open. */
const EVERY_MS = 5000;

/** Requests to erase a user, which can be cancelled during the grace period. */
export class Erasures {
  #panel = byId('erasure');
  #body = h('tbody', {});
  #note = h('p', { class: 'muted small', role: 'status' });
  #id = h('input', {
    type: 'text',
    autocomplete: 'off',
    spellcheck: 'false',
    maxlength: '1024',
    required: true,
  });
  #by = h(
    'select',
    {},
    h('option', { value: 'user', text: 'user id' }),
    h('option', { value: 'client_user', text: 'client user id' }),
  );
  #team = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: '1024' });
  #loaded = 0;

  constructor() {
    const asking = form(
      { 'aria-label': 'User to erase' },
      () => void this.#request(),
      h('label', {}, 'Id', this.#id),
      h('label', {}, 'It is a', this.#by),
      h('label', {}, 'Only of this team (empty: all)', this.#team),
      h('button', { type: 'submit', class: 'danger', text: 'Request an erasure…' }),
    );
    this.#panel.append(
      asking,
      this.#note,
      table({ class: 'stack', 'aria-label': 'Erasures that wait' }, WAITING, this.#body),
    );
  }

  update() {
    if (!this.#panel.hidden && performance.now() - this.#loaded > EVERY_MS) void this.#load();
  }

  refresh() {
    this.#loaded = -Infinity;
  }

  async #load() {
    this.#loaded = performance.now();
    try {
      const { waiting, erased } = await api.erasures();
      keyedRows(
        this.#body,
        waiting,
        ({ request, due_at: due, begun_at: begun }) => `${request} ${due} ${begun}`,
        (one) => this.#row(one),
        { columns: WAITING.length, empty: 'No erasure waits.' },
      );
      setText(this.#note, `${format.plural(erased.length, 'user')} erased so far; receipts: erasure.path.`);
    } catch (error) {
      setText(this.#note, `The erasures could not be read: ${error.message}`);
    }
  }

  #row({ request, due_at: due, begun_at: begun, by, id, team }) {
    const texts = {
      Request: request,
      Whose: `${by === 'user' ? 'user' : 'client user'} ${id}`,
      Team: team ?? 'all',
      Due: format.moment(due),
      State: begun === null ? 'can be cancelled' : 'begun',
    };
    const classes = { Whose: 'wrap wide', Request: 'id half' };
    const cells = Object.entries(texts).map(([label, text]) =>
      cell(label, { className: classes[label] ?? '' }, text),
    );
    const cancel = h('button', {
      type: 'button',
      class: 'small',
      text: 'Cancel',
      'aria-label': `Cancel ${request}`,
      disabled: begun !== null,
      onclick: () =>
        this.#act(async () => {
          const { status } = await api.cancelErasure({ by, id, team });
          return status === 'cancelled' ? 'Cancelled: nothing was erased.' : 'There was nothing to cancel.';
        }),
    });
    return still(h('tr', {}, ...cells, h('td', { class: 'acts' }, cancel)));
  }

  async #request() {
    const [id, team] = [this.#id.value.trim(), this.#team.value.trim()];
    if (id === '') return;
    const whose = `${this.#by.value === 'user' ? 'user' : 'client user'} ${id}`;
    const sure = await ask(
      `Erase ${whose}?`,
      `All data of ${whose}${team === '' ? '' : ` of team ${team}`} is removed from the journal, archives and tables when ` +
        'the grace period (erasure.grace) is over, and later events of this user are dropped. Until then it can be cancelled here.',
      'Request it',
      'Do not',
    );
    if (!sure) return;
    await this.#act(async () => {
      const asked = { by: this.#by.value, id, team: team === '' ? null : team };
      const { request, due_at: due } = await api.requestErasure(asked);
      this.#id.value = '';
      return `Request ${request} is due ${format.moment(due)}.`;
    });
  }

  async #act(work) {
    await toastResult(work);
    await this.#load();
  }
}
