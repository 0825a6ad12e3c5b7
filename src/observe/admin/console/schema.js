import { api } from './api.js';
import { byId, cell, emptyRow, fill, h, setHidden, setText } from './dom.js';
import * as format from './format.js';

/** Milliseconds for which a type or field is marked as new. */
const NEW_MS = 86_400_000;

/** Types and fields of accepted events, without values. */
export class Schema {
  #types = fill(byId('schema-types'), ['Type', 'Events', 'Fields', 'Last seen'], {
    number: ['Events', 'Fields'],
  });
  #fields = byId('schema-fields');
  #rows = fill(this.#fields, ['Field', 'Kinds', 'In', 'First seen', 'Last seen'], { number: ['In'] });
  #type = null;
  #report = null;
  #now = 0;

  update(state) {
    this.#now = state.now;
    setHidden(byId('tab-schema'), state.acknowledge !== 'journaled');
  }

  refresh() {
    void this.#ask();
  }

  async #ask() {
    try {
      this.#report = await api.list('schema', {});
    } catch (error) {
      setText(byId('schema-note'), error.message);
      return;
    }
    this.#show();
  }

  #show() {
    const { types, enabled, full } = this.#report;
    const said = [
      format.plural(types.length, 'event type'),
      ...(enabled ? [] : ['schema.enabled is false: these are events from before']),
      ...(full ? ['there were more types than are remembered'] : []),
    ];
    setText(byId('schema-note'), said.join('; '));
    const rows = types.map((type) => this.#typeRow(type));
    this.#types.replaceChildren(...(rows.length === 0 ? [emptyRow(4, 'No events yet.')] : rows));
    const chosen = types.find(({ type }) => type === this.#type);
    setHidden(this.#fields, chosen === undefined);
    if (chosen === undefined) return;
    setText(byId('schema-type'), chosen.type);
    this.#rows.replaceChildren(...chosen.fields.map((field) => this.#fieldRow(field, chosen)));
  }

  #typeRow(type) {
    const name = cell('Type', { className: 'type' });
    name.append(
      h('button', {
        type: 'button',
        class: 'link',
        'aria-controls': 'schema-fields',
        'aria-expanded': String(type.type === this.#type),
        'data-type': type.type,
        text: type.type,
        onclick: () => this.#choose(type.type),
      }),
      ...this.#badge(type.first_seen),
    );
    const events = cell('Events', { number: true }, format.count(type.events));
    const count = `${format.count(type.fields.length)}${type.full ? '+' : ''}`;
    const fields = cell('Fields', { number: true }, count);
    return h('tr', {}, name, events, fields, timeCell('Last seen', type.last_seen));
  }

  #fieldRow(field, type) {
    const name = cell('Field', { className: 'type' });
    name.append(
      h('code', { text: field.path }),
      ...(field.first_seen > type.first_seen ? this.#badge(field.first_seen) : []),
    );
    return h(
      'tr',
      {},
      name,
      cell('Kinds', {}, Object.keys(field.kinds).join(', ')),
      cell('In', { number: true }, format.percent(field.share)),
      timeCell('First seen', field.first_seen),
      timeCell('Last seen', field.last_seen),
    );
  }

  #choose(type) {
    this.#type = this.#type === type ? null : type;
    this.#show();
    // The rows were replaced.
    [...this.#types.querySelectorAll('button')].find(({ dataset }) => dataset.type === type)?.focus();
  }

  #badge(first) {
    return this.#now - Date.parse(first) < NEW_MS
      ? [' ', h('span', { class: 'pill warn', text: 'new' })]
      : [];
  }
}

function timeCell(label, at) {
  return cell(label, {}, format.moment(at));
}
