import { api } from './api.js';
import { ask, toastResult } from './dialog.js';
import { byId, cell, form, h, keyedRows, rowButton, setHidden, setText, table } from './dom.js';
import * as format from './format.js';

const TONES = {
  counting: 'plain',
  counted: 'plain',
  running: 'good',
  done: 'good',
  failed: 'bad',
  interrupted: 'warn',
};
const COLUMNS = ['What', 'State', 'Events', 'Types', ''];
const CLASSES = { What: 'wrap wide', State: 'wrap', Types: 'wrap wide' };
/** Types that are named; the rest are counted. */
const NAMED = 6;

/** Replays: counts the events, sends them after a confirmation, and shows the progress. */
export class Replays {
  #panel = byId('replay');
  #body = h('tbody', {});
  #note = h('p', { class: 'muted small', role: 'status' });
  #from = h('select', {});
  #to = h('select', {});
  #place = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: '300' });
  #types = h('input', { type: 'text', autocomplete: 'off', spellcheck: 'false', maxlength: '1000' });
  #since = h('input', { type: 'datetime-local', step: '1' });
  #until = h('input', { type: 'datetime-local', step: '1' });
  /** Disabled until the sources and targets are known. */
  #count = h('button', { type: 'submit', class: 'primary', disabled: true, text: 'Count the events' });
  #activities = [];
  #choices = '';
  #loading = false;

  constructor() {
    const asking = form(
      { 'aria-label': 'Events to send again' },
      () =>
        void this.#act(async () => {
          await api.countReplay(this.#read());
          return 'Counting. Nothing is sent yet.';
        }),
      h('label', {}, 'From', this.#from),
      h('label', {}, 'To', this.#to),
      h('label', {}, 'Place in the sink, if not its own', this.#place),
      h('label', {}, 'Types begin with (several: commas)', this.#types),
      h('label', {}, 'Received from', this.#since),
      h('label', {}, 'until', this.#until),
      this.#count,
    );
    this.#panel.append(
      asking,
      this.#note,
      table({ class: 'stack', 'aria-label': 'Replays' }, COLUMNS, this.#body),
    );
  }

  update({ activities }) {
    this.#activities = activities;
    if (!this.#panel.hidden) void this.#load();
  }

  refresh() {}

  async #load() {
    if (this.#loading) return;
    this.#loading = true;
    try {
      const { jobs, from, to } = await api.replays();
      this.#offer(from, to);
      keyedRows(
        this.#body,
        jobs,
        ({ id }) => id,
        ({ id }) => this.#row(id),
        { columns: COLUMNS.length, empty: 'No replay since the start.' },
      );
      setText(this.#note, '');
    } catch (error) {
      setText(this.#note, `The replays could not be read: ${error.message}`);
    } finally {
      this.#loading = false;
    }
  }

  #offer(from, to) {
    const choices = JSON.stringify([from, to]);
    if (choices === this.#choices) return;
    this.#choices = choices;
    this.#count.disabled = false;
    this.#from.replaceChildren(
      ...from.map((name) => option(name, name === 'journal' ? 'the journal' : `archive of ${name}`)),
    );
    this.#to.replaceChildren(
      option('', 'by the current routes'),
      ...to.map((name) => option(name, `sink ${name}`)),
    );
  }

  #read() {
    const place = this.#place.value.trim();
    const to = this.#to.value === '' ? null : this.#to.value + (place === '' ? '' : `:${place}`);
    const types = this.#types.value
      .split(',')
      .map((type) => type.trim())
      .filter((type) => type !== '');
    return {
      from: this.#from.value,
      to,
      types,
      ...time('since', this.#since),
      ...time('until', this.#until),
    };
  }

  #row(id) {
    let job = null;
    const [what, state, events, types] = COLUMNS.slice(0, -1).map((label) =>
      cell(label, { number: label === 'Events', className: CLASSES[label] ?? '' }),
    );
    const pill = h('span', { class: 'pill' });
    const bar = h('progress', { 'aria-label': `Progress of ${id}` });
    const detail = h('span', { class: 'muted small wrap' });
    state.append(pill, ' ', bar, ' ', detail);
    const button = (text, className, act) => rowButton(text, className, id, () => act(job));
    const buttons = {
      start: button('Send…', '', (one) => this.#start(one)),
      resume: button('Continue', '', (one) => this.#start(one)),
      stop: button('Stop', '', (one) => this.#act(() => api.stopReplay(one.id).then(() => 'Stopping.'))),
      forget: button('Forget', 'danger', (one) => this.#forget(one)),
    };
    const acts = h('td', { class: 'acts' }, ...Object.values(buttons));
    return {
      element: h('tr', {}, what, state, events, types, acts),
      update: (next) => {
        job = next;
        setText(what, next.order === null ? id : describe(next.order));
        setText(pill, next.state);
        pill.className = `pill ${TONES[next.state]}`;
        setText(detail, next.detail ?? '');
        const counts = next.result ?? next.preview;
        const total = next.preview?.selected ?? null;
        const done = this.#activities.find((one) => one.kind === 'replay' && one.id === id)?.done ?? 0;
        setHidden(bar, next.state !== 'running' && next.state !== 'counting');
        if (next.state === 'running' && total > 0) bar.value = Math.min(1, done / total);
        else bar.removeAttribute('value');
        const of = next.state === 'running' && total !== null ? `${format.count(done)} of ` : '';
        setText(events, counts === null ? '–' : of + format.count(counts.selected));
        setText(types, counts === null ? '' : typesOf(counts));
        setHidden(buttons.start, next.state !== 'counted');
        setHidden(buttons.resume, !next.isBegun || !['interrupted', 'failed'].includes(next.state));
        setHidden(buttons.stop, next.state !== 'running' && next.state !== 'counting');
        setHidden(buttons.forget, next.state === 'running' || next.state === 'counting');
      },
    };
  }

  async #start(job) {
    const { preview, order } = job;
    if (job.isBegun) return this.#act(() => api.startReplay(job.id).then(() => 'Continuing.'));
    const targets = Object.entries(preview.targets)
      .map(([target, count]) => `${format.count(count)} to ${target}`)
      .join(', ');
    const nowhere = preview.nowhere === 0 ? '' : ` ${format.count(preview.nowhere)} go nowhere.`;
    const sure = await ask(
      `Send ${format.plural(preview.selected, 'event')} again?`,
      `${describe(order)}: ${typesOf(preview)}. ${targets}.${nowhere} They carry a replay id and the ids they had; ` +
        'what came in since the count goes too.',
      'Send',
      'Do not send',
    );
    if (sure) await this.#act(() => api.startReplay(job.id).then(() => 'Sending.'));
  }

  async #forget(job) {
    if (job.state === 'interrupted') {
      const text = 'What was sent stays sent; the rest does not follow.';
      if (!(await ask(`Forget ${job.id}?`, text, 'Forget'))) return;
    }
    await this.#act(() => api.forgetReplay(job.id).then(() => 'Forgotten.'));
  }

  async #act(work) {
    await toastResult(work);
    await this.#load();
  }
}

function option(value, text) {
  return h('option', { value, text });
}

function time(name, { value }) {
  return value === '' ? {} : { [name]: new Date(value).toISOString() };
}

function describe({ from, to, types, since, until }) {
  const what = types.length === 0 ? '' : `, ${types.map((type) => `${type}*`).join(', ')}`;
  const start = since === undefined ? '' : `, from ${format.moment(since)}`;
  const end = until === undefined ? '' : `, until ${format.moment(until)}`;
  return `${from} to ${to ?? 'the routes'}${what}${start}${end}`;
}

/** 1,200 daily.data.meal.created, 3 labtest.order.updated */
export function typesOf({ types }) {
  const sorted = Object.entries(types).toSorted(([, one], [, other]) => other - one);
  const named = sorted
    .slice(0, NAMED)
    .map(([type, count]) => `${format.count(count)} ${type || '(no type)'}`);
  const rest = sorted.slice(NAMED).reduce((sum, [, count]) => sum + count, 0);
  if (rest > 0) named.push(`${format.count(rest)} of other types`);
  return named.length === 0 ? 'none' : named.join(', ');
}
