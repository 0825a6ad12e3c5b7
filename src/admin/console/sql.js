import { api, Unauthorised } from './api.js';
import { byId, h, setHidden, setText } from './dom.js';
import { Database, MOST_ROWS } from './duckdb.js';
import * as format from './format.js';
import { readTable } from './parquet-table.js';

/** Milliseconds between two looks whether users were erased: what is loaded may be theirs. */
const EVERY = 5000;
/** Characters of a value that are shown. */
const LONGEST = 2000;

let database = null;
/** What is loaded, by table. */
const loaded = new Map();
/** Erasures that the receiver knew of when the data was loaded. */
let forgotten = null;
let busy = false;

function tell(text, tone = 'plain') {
  setText(byId('state'), text);
  byId('state').className = `pill ${tone}`;
}

/** Says why the page can do nothing, and hides what it cannot do. */
function giveUp(text) {
  setText(byId('problem'), text);
  setHidden(byId('problem'), false);
  for (const id of ['data', 'queries']) setHidden(byId(id), true);
  tell('Not ready', 'warn');
}

async function start() {
  const { lack } = await (await fetch('duckdb/status')).json();
  if (lack !== null) return giveUp(`The SQL page ${lack}, in the receiver’s folder. Then reload this page.`);
  let choices;
  try {
    choices = await api.sqlChoices();
  } catch (error) {
    if (error instanceof Unauthorised) return giveUp('Sign in on the console first, in this tab.');
    return giveUp(error.message);
  }
  const { archives, tables } = choices;
  if (archives.length === 0) return giveUp('No sink of this receiver has an archive.');
  byId('sink').replaceChildren(
    ...archives.map(({ sink, sealed }) =>
      h('option', {
        value: sink,
        text: sealed ? `${sink} (sealed: not readable here)` : sink,
        disabled: sealed,
      }),
    ),
  );
  byId('table').replaceChildren(...tables.map((name) => h('option', { value: name, text: name })));
  byId('table').value = 'events';
  byId('since').value = localTime(Date.now() - 86_400_000);
  setHidden(byId('data'), false);
  setHidden(byId('queries'), false);
  tell('Ready', 'good');
  setInterval(() => void forgetErased(), EVERY);
}

/** As an input of a local time takes it. */
function localTime(at) {
  return new Date(at - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function time(name) {
  const { value } = byId(name);
  return value === '' ? {} : { [name]: new Date(value).toISOString() };
}

function order() {
  const types = byId('types')
    .value.split(',')
    .map((type) => type.trim())
    .filter((type) => type !== '');
  const [sink, table, limit] = [byId('sink').value, byId('table').value, Number(byId('limit').value)];
  return { sink, table, types, limit, ...time('since'), ...time('until') };
}

async function load() {
  const asked = order();
  const note = byId('data-note');
  tell('Reading', 'plain');
  setText(note, `Reading ${asked.table} from the archive of ${asked.sink}…`);
  const before = await erasuresKnown();
  const file = await api.sqlData(asked, (bytes) => setText(note, `${format.bytes(bytes)} read…`));
  if (file === null) {
    setText(note, `No row of ${asked.table} is in that part of the archive.`);
    return;
  }
  const { columns, bytes, rows, facts } = await readTable(file);
  tell('Loading DuckDB', 'plain');
  database ??= await Database.open();
  await database.load(asked.table, bytes, columns);
  forgotten ??= before;
  loaded.set(asked.table, { rows, columns: columns.map(({ name }) => name) });
  const of = `${format.plural(rows, 'row')} of ${format.plural(facts.records ?? 0, 'record')}`;
  const cut = facts.cut ? ' There are more: narrow the time, or raise the number of records.' : '';
  const bad = facts.problems > 0 ? ` ${format.plural(facts.problems, 'record')} could not be read.` : '';
  setText(note, `${asked.table}: ${of}, from ${asked.sink}.${cut}${bad}`);
  showTables();
  if (byId('query').value === '') byId('query').value = exampleOf(asked.table);
}

function exampleOf(table) {
  return table === 'events'
    ? 'SELECT event_type, count(*) AS events, max(received_at) AS newest\nFROM events GROUP BY ALL ORDER BY events DESC'
    : `SELECT * FROM ${table} LIMIT 100`;
}

function showTables() {
  byId('tables').replaceChildren(
    ...[...loaded].map(([name, { rows, columns }]) =>
      h(
        'li',
        {},
        h(
          'details',
          {},
          h(
            'summary',
            {},
            h('b', { text: name }),
            ` ${format.plural(rows, 'row')}, ${columns.length} columns`,
          ),
          h('span', { class: 'muted small wrap', text: columns.join(', ') }),
        ),
      ),
    ),
  );
}

async function run() {
  const query = byId('query').value.trim();
  if (query === '') return;
  setText(byId('query-error'), '');
  setText(byId('query-note'), '');
  if (database === null) throw new Error('Load a table first.');
  // Noted before it runs: what cannot be noted is not done.
  await api.sqlQuery(query);
  setHidden(byId('stop'), false);
  tell('Running', 'plain');
  const started = performance.now();
  const { columns, rows } = await database.query(query);
  show(columns, rows.slice(0, MOST_ROWS));
  const many =
    rows.length > MOST_ROWS ? `the first ${format.count(MOST_ROWS)} rows` : format.plural(rows.length, 'row');
  setText(byId('query-note'), `${many}, ${format.duration(performance.now() - started)}`);
}

function show(columns, rows) {
  const table = byId('result-table');
  table.tHead.replaceChildren(
    h('tr', {}, ...columns.map((name) => h('th', { scope: 'col', text: name ?? '' }))),
  );
  table.tBodies[0].replaceChildren(
    ...rows.map((row) =>
      h(
        'tr',
        {},
        ...row.map((value) =>
          value === null
            ? h('td', {}, h('i', { class: 'muted', text: 'NULL' }))
            : h('td', { text: value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value }),
        ),
      ),
    ),
  );
  setHidden(byId('result'), false);
}

/** How often users were erased, as the receiver counts it. */
async function erasuresKnown() {
  const { startedAt, forgotten: times } = await api.state(Date.now(), Number.MAX_SAFE_INTEGER);
  return `${startedAt} ${times}`;
}

/** What was loaded before an erasure goes: it may be of that user. */
async function forgetErased() {
  if (forgotten === null || document.hidden) return;
  const now = await erasuresKnown().catch(() => forgotten);
  if (now !== forgotten)
    forget('Users were erased, or the receiver was started anew: the data was let go of. Load it again.');
}

function forget(why) {
  database?.end();
  database = null;
  forgotten = null;
  loaded.clear();
  showTables();
  setHidden(byId('result'), true);
  byId('result-table').tBodies[0].replaceChildren();
  setText(byId('data-note'), why);
}

/** One thing at a time. */
async function alone(work, error) {
  if (busy) return;
  busy = true;
  for (const button of document.querySelectorAll('button[type=submit]')) button.disabled = true;
  try {
    await work();
    tell('Ready', 'good');
  } catch (failure) {
    if (failure instanceof Unauthorised) giveUp('You were signed out. Sign in on the console, in this tab.');
    else {
      setText(error, wordsOf(failure));
      tell('Ready', 'good');
    }
  } finally {
    busy = false;
    setHidden(byId('stop'), true);
    for (const button of document.querySelectorAll('button[type=submit]')) button.disabled = false;
  }
}

/** DuckDB's own words, and what they do not say. */
function wordsOf({ message }) {
  const hint = /json|parquet|extension/i.test(message)
    ? ' (This page has DuckDB without its extensions, and loads nothing from elsewhere: load another table, whose columns are the fields of the data.)'
    : '';
  return `${message}${hint}`;
}

byId('load-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void alone(load, byId('data-note'));
});
byId('query-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void alone(run, byId('query-error'));
});
byId('query').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  byId('query-form').requestSubmit();
});
byId('stop').addEventListener('click', () => {
  forget('Stopped, and with it the database of this tab: load the data again.');
  byId('query').focus();
});

await start();
