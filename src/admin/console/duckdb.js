// Speaks with DuckDB's own thread (`@duckdb/duckdb-wasm`, dist/types/src/parallel). Results come as CSV that DuckDB writes
// itself: exact for every type, and nothing else is needed to read them.

import { parseCsv } from './csv.js';

/** Rows that are shown. */
export const MOST_ROWS = 1000;

/** Only this script may become a thread: see `require-trusted-types-for` in the policy of the page. */
const policy = globalThis.trustedTypes?.createPolicy('millrace-sql', {
  createScriptURL: (url) => {
    if (url !== here('duckdb/worker.js')) throw new TypeError('no such script');
    return url;
  },
});

/** A database in this tab, in a thread of its own; `end` forgets all of it. */
export class Database {
  #worker;
  #waiting = new Map();
  #asked = 0;
  #connection = null;
  #files = 0;

  static async open() {
    const database = new Database();
    await database.#ask('INSTANTIATE', [here('duckdb/duckdb.wasm'), null]);
    await database.#ask('OPEN', { path: ':memory:' });
    database.#connection = await database.#ask('CONNECT', null);
    // What is not in the package would be fetched from elsewhere, which the policy forbids, and an attempt breaks DuckDB.
    for (const name of ['autoinstall', 'autoload'])
      await database.run(`SET ${name}_known_extensions = false`);
    await database.run("SET TimeZone = 'UTC'").catch(() => undefined);
    return database;
  }

  constructor() {
    const url = here('duckdb/worker.js');
    this.#worker = new Worker(policy === undefined ? url : policy.createScriptURL(url));
    this.#worker.addEventListener('message', ({ data }) => this.#answered(data));
    this.#worker.addEventListener('error', (event) =>
      this.#fail(new Error(event.message || 'DuckDB’s thread ended')),
    );
  }

  /** Runs a statement of ours. */
  run(sql) {
    return this.#ask('RUN_QUERY', [this.#connection, sql]);
  }

  /** Makes a table of a CSV text without a header. @param columns `{ name, read, as }`: its type in the text, and what it becomes */
  async load(table, bytes, columns) {
    this.#files += 1;
    const file = `in-${this.#files}.csv`;
    await this.#ask('REGISTER_FILE_BUFFER', [file, bytes], [bytes.buffer]);
    const types = columns.map(({ name, read }) => `'${name}': '${read}'`).join(', ');
    const values = columns.map(({ name, as }) => `${as(quoted(name))} AS ${quoted(name)}`).join(', ');
    try {
      await this.run(
        `CREATE OR REPLACE TABLE ${quoted(table)} AS SELECT ${values} FROM read_csv('${file}', auto_detect = false, header = false, ` +
          `delim = ',', quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false, parallel = false, ` +
          `max_line_size = 33554432, columns = {${types}})`,
      );
    } finally {
      await this.#ask('DROP_FILE', file);
    }
  }

  /** @returns names of columns, and rows of texts, null for NULL: one row more than is shown where there are more */
  async query(sql) {
    this.#files += 1;
    const file = `out-${this.#files}.csv`;
    const inner = sql.trim().replace(/;+\s*$/, '');
    try {
      await this.run(
        `COPY (SELECT COLUMNS(*)::VARCHAR FROM (\n${inner}\n) LIMIT ${MOST_ROWS + 1}) TO '${file}' ` +
          `(FORMAT csv, HEADER true, FORCE_QUOTE *)`,
      );
      const bytes = await this.#ask('COPY_FILE_TO_BUFFER', file);
      const [header = [], ...rows] = parseCsv(new TextDecoder().decode(bytes));
      return { columns: header, rows };
    } finally {
      await this.#ask('DROP_FILE', file).catch(() => undefined);
    }
  }

  end() {
    this.#worker.terminate();
    this.#fail(new Error('stopped'));
  }

  #ask(type, data, transfer = []) {
    this.#asked += 1;
    const messageId = this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(messageId, { resolve, reject });
      this.#worker.postMessage({ messageId, type, data }, transfer);
    });
  }

  #answered({ requestId, type, data }) {
    const waiting = this.#waiting.get(requestId);
    // Progress and log lines are answers to no question.
    if (
      waiting === undefined ||
      type === 'LOG' ||
      type === 'INSTANTIATE_PROGRESS' ||
      type === 'PROGRESS_UPDATE'
    )
      return;
    this.#waiting.delete(requestId);
    if (type === 'ERROR') waiting.reject(new Error(data.message));
    else waiting.resolve(data);
  }

  #fail(error) {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

function here(path) {
  return new URL(path, location.href).href;
}

function quoted(name) {
  return `"${name.replaceAll('"', '""')}"`;
}
