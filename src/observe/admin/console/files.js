import { api } from './api.js';
import { toast } from './dialog.js';
import { byId, cell, emptyRow, form, h, setHidden, setText, table } from './dom.js';
import * as format from './format.js';

const COLUMNS = ['File', 'State', 'Records', 'Bytes', 'Received'];
const NUMBERS = ['Records', 'Bytes'];
const STATES = { closed: 'closed', compacted: 'compacted', kept: 'kept event', erased: 'after an erasure' };
/** Pages that one click loads, when all files of a page are obsolete. */
const MOST_ASKED = 10;

/** The closed files of archives, by their manifests. */
export class Files {
  #panel = byId('files');
  #sink = h('select', {});
  #note = h('p', { class: 'muted small', role: 'status' });
  #path = null;
  #command = h('code', { class: 'wrap' });
  #copying = h('p', { class: 'toolbar', hidden: true });
  #body = h('tbody', {});
  #more = h('button', { type: 'button', text: 'Show older', hidden: true });
  #names = '';
  #isDue = false;
  #asked = 0;
  #next = null;
  /** Files of newer lines, and files that were joined into others. */
  #known = new Set();

  constructor() {
    const asking = form(
      { 'aria-label': 'Archive' },
      () => void this.#ask(),
      h('label', {}, 'Written by sink', this.#sink),
      h('button', { type: 'submit', text: 'Show the newest' }),
    );
    this.#sink.addEventListener('change', () => void this.#ask());
    this.#more.addEventListener('click', () => void this.#ask(this.#next));
    const copy = h('button', { type: 'button', text: 'Copy', onclick: () => void this.#copy() });
    this.#copying.append(this.#command, copy);
    this.#panel.append(
      asking,
      this.#note,
      this.#copying,
      table({ class: 'stack', 'aria-label': 'Files of the archive' }, COLUMNS, this.#body, {
        number: NUMBERS,
      }),
      this.#more,
    );
  }

  update(state) {
    const names = state.sinks.filter(({ type }) => type === 'files').map(({ sink }) => sink);
    setHidden(byId('tab-files'), names.length === 0);
    if (this.#names !== names.join('\n')) {
      const chosen = this.#sink.value;
      this.#names = names.join('\n');
      this.#sink.replaceChildren(...names.map((name) => h('option', { value: name, text: name })));
      if (names.includes(chosen)) this.#sink.value = chosen;
      else this.#isDue = true;
    }
    if (!this.#isDue || this.#panel.hidden || names.length === 0) return;
    this.#isDue = false;
    void this.#ask();
  }

  refresh() {
    this.#isDue = true;
  }

  async #ask(before = null) {
    this.#asked += 1;
    const asked = this.#asked;
    const sink = this.#sink.value;
    const known = before === null ? new Set() : this.#known;
    const rows = [];
    let page;
    try {
      for (let n = 0; n < MOST_ASKED && (n === 0 || (rows.length === 0 && page.next !== null)); n += 1) {
        page = await api.files(sink, page === undefined ? before : page.next);
        if (asked !== this.#asked) return;
        rows.push(...page.files.filter((file) => counts(file, known)).map((file) => this.#rowOf(file)));
      }
    } catch (error) {
      if (asked === this.#asked) this.#fail(error, before);
      return;
    }
    this.#known = known;
    this.#next = page.next;
    this.#path = page.path;
    setHidden(this.#copying, page.path === null);
    if (before === null) {
      this.#showCommand('**/*.ndjson*');
      this.#body.replaceChildren();
    }
    this.#body.append(...rows);
    const shown = this.#body.querySelectorAll('tr:not(.empty)').length;
    if (shown === 0) this.#body.replaceChildren(emptyRow(COLUMNS.length, 'No file was closed yet.'));
    setHidden(this.#more, page.next === null);
    const open = page.parts === null ? '' : `; ${format.plural(page.parts, 'file')} open now`;
    const files = `${format.plural(shown, 'file')}${page.next === null ? '' : ' and older ones'}`;
    setText(this.#note, `${files}${open}. As the manifest has them; millrace archive verify checks it.`);
  }

  #fail(error, before) {
    setText(this.#note, `The files could not be listed: ${error.message}`);
    if (before !== null) return;
    this.#body.replaceChildren();
    setHidden(this.#more, true);
    setHidden(this.#copying, true);
  }

  /** @param file name in the archive, or a pattern */
  #showCommand(file) {
    const name = `${this.#path}/${file}`.replaceAll("'", "''");
    const sql = `SELECT json->>'event_type' AS type, count(*) AS records FROM read_ndjson_objects('${name}') GROUP BY ALL`;
    setText(this.#command, `duckdb -c "${sql.replaceAll(/["$`\\]/g, String.raw`\$&`)}"`);
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(this.#command.textContent);
      toast('The command was copied.');
    } catch {
      // Pages without TLS have no clipboard.
      getSelection().selectAllChildren(this.#command);
      toast('The command is selected: copy it with the keyboard.');
    }
  }

  #rowOf({ file, state, records, bytes, first_received_at: first, last_received_at: last }) {
    const texts = [
      ['State', STATES[state]],
      ['Records', records === null ? '–' : format.count(records)],
      ['Bytes', format.bytes(bytes)],
      ['Received', first === null ? '–' : `${format.moment(first)} – ${format.moment(last)}`],
    ];
    const text = h('code', { text: file });
    const onclick = () => this.#showCommand(file);
    // DuckDB cannot read the file of a kept event.
    const name = state === 'kept' ? text : h('button', { type: 'button', class: 'link wrap', onclick }, text);
    const others = texts.map(([label, value]) => cell(label, { number: NUMBERS.includes(label) }, value));
    return h('tr', {}, cell('File', { className: 'wrap half' }, name), ...others);
  }
}

/** Whether this is the newest line of the file. */
function counts({ file, state, replaces }, known) {
  const isNew = !known.has(file);
  if (isNew) for (const name of [file, ...replaces]) known.add(name);
  return isNew && state !== 'removed';
}
