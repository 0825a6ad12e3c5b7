import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { writeFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api';
import { bigQueryStatements } from './bigquery-sql.ts';
import { listen } from './listen.ts';

interface JobResource {
  readonly kind: 'bigquery#job';
  readonly id: string;
  readonly jobReference: { readonly projectId: string; readonly jobId: string; readonly location: string };
  readonly configuration: Configuration;
  status: {
    state: 'RUNNING' | 'DONE';
    errorResult?: ErrorProto;
    errors?: readonly ErrorProto[];
  };
}

interface Configuration {
  readonly query?: { readonly query: string; readonly defaultDataset: { readonly datasetId: string } };
  readonly load?: {
    readonly destinationTable: { readonly tableId: string };
    readonly schema: { readonly fields: readonly { name: string; type: string; mode: string }[] };
    readonly sourceFormat: string;
    readonly writeDisposition: string;
  };
}

interface ErrorProto {
  readonly reason: string;
  readonly message: string;
}

/** What happens to a request beside being answered. */
export type Fault =
  /** The connection ends: before anything was done, or when all was done and the answer is lost. */
  | 'lost'
  | 'answer lost'
  /** An answer in the shape of Google's errors. */
  | (ErrorProto & { readonly status: number })
  /** The job is taken, and fails. */
  | { readonly job: ErrorProto }
  /** The job is taken, and runs when `finish` is called. */
  | 'slow';

export interface Asked {
  /** Counted from 0. */
  readonly nth: number;
  readonly method: string;
  /** Behind the project: `/jobs`, `/datasets/x/tables/y`, `/upload/jobs`. */
  readonly path: string;
}

const PROJECT = 'made-up-project';
const LOCATION = 'europe-west1';

/**
 * A stand-in of BigQuery's REST API, by its public reference: datasets.get, tables.list, patch and delete, jobs.insert with
 * its multipart upload, jobs.get, jobs.getQueryResults. Statements run in DuckDB, put into its words; nothing here was
 * recorded from Google.
 */
export class FakeBigQuery {
  readonly project = PROJECT;
  readonly dataset = 'health';
  readonly asked: Asked[] = [];
  /** What came with each of them. */
  readonly bodies: string[] = [];
  /** Scripts and questions, as they came. */
  readonly scripts: string[] = [];
  readonly expiring = new Map<string, number>();
  fault: (asked: Asked) => Fault | null = () => null;
  readonly #server: Server;
  readonly #connection: DuckDBConnection;
  readonly #folder: string;
  readonly #jobs = new Map<string, JobResource>();
  readonly #uploads = new Map<string, Buffer>();
  readonly #results = new Map<string, { names: string[]; rows: unknown[][] }>();
  #url = '';
  /** DuckDB has one connection here: jobs run one behind the other. */
  #busy: Promise<unknown> = Promise.resolve();

  private constructor(connection: DuckDBConnection, folder: string) {
    this.#connection = connection;
    this.#folder = folder;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        fail(response, 500, { reason: 'internalError', message: String(error) });
      });
    });
  }

  /** @param folder where it may write */
  static async start(folder: string): Promise<FakeBigQuery> {
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    await connection.run(`SET TimeZone = 'UTC'`);
    const fake = new FakeBigQuery(connection, folder);
    fake.#url = `http://127.0.0.1:${await listen(fake.#server)}`;
    return fake;
  }

  get url(): string {
    return this.#url;
  }

  /** Rows as text, values joined by `|`; in DuckDB's words. */
  async sql(text: string): Promise<string[]> {
    const rows = (await this.#connection.runAndReadAll(text)).getRows();
    return rows.map((row) => row.map((value) => String(value ?? '')).join('|'));
  }

  /** Runs the jobs that are slow. */
  async finish(): Promise<void> {
    for (const job of this.#jobs.values()) if (job.status.state === 'RUNNING') await this.#execute(job);
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
    this.#connection.closeSync();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const { pathname } = new URL(request.url ?? '', this.#url);
    const upload = pathname.startsWith('/upload/') ? '/upload' : '';
    const path = upload + pathname.replace(new RegExp(`^.*/bigquery/v2/projects/${PROJECT}`), '');
    const asked = { nth: this.asked.length, method: request.method ?? '', path };
    this.asked.push(asked);
    this.bodies.push(body.toString('latin1'));
    const fault = this.fault(asked);
    if (fault === 'lost') {
      response.destroy();
      return;
    }
    if (fault !== null && typeof fault === 'object' && 'status' in fault) {
      fail(response, fault.status, fault);
      return;
    }
    if (asked.method === 'POST') {
      const { metadata, media } = upload === '' ? { metadata: body, media: null } : partsOf(request, body);
      const job = JSON.parse(metadata.toString()) as Pick<JobResource, 'jobReference' | 'configuration'>;
      await this.#insert(job, media, fault, fault === 'answer lost' ? null : response);
      if (fault === 'answer lost') response.destroy();
      return;
    }
    await this.#read(asked, fault === 'answer lost' ? null : response, body);
    if (fault === 'answer lost') response.destroy();
  }

  async #insert(
    { jobReference, configuration }: Pick<JobResource, 'jobReference' | 'configuration'>,
    media: Buffer | null,
    fault: Fault | null,
    response: ServerResponse | null,
  ): Promise<void> {
    const { jobId, location } = jobReference;
    if (location !== LOCATION) throw new Error(`a job in ${location}`);
    const id = `${PROJECT}:${location}.${jobId}`;
    if (this.#jobs.has(jobId)) {
      if (response !== null)
        fail(response, 409, { reason: 'duplicate', message: `Already Exists: Job ${id}` });
      return;
    }
    const job: JobResource = {
      kind: 'bigquery#job',
      id,
      jobReference: { projectId: PROJECT, jobId, location },
      configuration,
      status: { state: 'RUNNING' },
    };
    this.#jobs.set(jobId, job);
    if (media !== null) this.#uploads.set(jobId, media);
    // A job is answered for when it is taken; how it ends is asked for.
    const taken = JSON.stringify(job);
    if (fault !== null && typeof fault === 'object' && 'job' in fault) end(job, fault.job);
    else if (fault !== 'slow') await this.#execute(job);
    if (response !== null) send(response, 200, taken);
  }

  async #execute(job: JobResource): Promise<void> {
    const work = this.#busy.then(async () => {
      if (job.status.state === 'DONE') return;
      const { query, load } = job.configuration;
      try {
        if (query !== undefined) await this.#run(job.jobReference.jobId, query.query);
        if (load !== undefined) await this.#load(job.jobReference.jobId, load);
        end(job, null);
      } catch (error) {
        end(job, { reason: 'invalidQuery', message: String(error) });
      }
    });
    this.#busy = work;
    await work;
  }

  async #run(jobId: string, script: string): Promise<void> {
    this.scripts.push(script);
    let isOpen = false;
    try {
      for (const statement of bigQueryStatements(script)) {
        const result = await this.#connection.runAndReadAll(statement);
        if (statement.startsWith('BEGIN')) isOpen = true;
        if (statement.startsWith('COMMIT')) isOpen = false;
        this.#results.set(jobId, { names: result.columnNames(), rows: result.getRows() });
      }
    } catch (error) {
      if (isOpen) await this.#connection.run('ROLLBACK');
      throw error;
    } finally {
      await this.#connection.run('DROP TABLE IF EXISTS temp._millrace_own');
    }
  }

  async #load(jobId: string, load: NonNullable<Configuration['load']>): Promise<void> {
    const { destinationTable, schema, sourceFormat, writeDisposition } = load;
    if (sourceFormat !== 'NEWLINE_DELIMITED_JSON' || writeDisposition !== 'WRITE_TRUNCATE')
      throw new Error(`${sourceFormat} ${writeDisposition}`);
    const file = join(this.#folder, `${jobId}.ndjson`);
    await writeFile(file, gunzipSync(this.#uploads.get(jobId) as Buffer));
    const types = { STRING: 'VARCHAR', INT64: 'BIGINT' } as Record<string, string>;
    const columns = schema.fields.map(({ name, type }) => `${name}: '${types[type]}'`).join(', ');
    await this.#connection.run(
      `CREATE OR REPLACE TABLE "${destinationTable.tableId}" AS FROM read_ndjson('${file}', columns = {${columns}})`,
    );
  }

  async #read({ method, path }: Asked, response: ServerResponse | null, body: Buffer): Promise<void> {
    const [, kind, name = '', , table] = path.split('/');
    const answer = (value: object): void => {
      if (response !== null) send(response, 200, JSON.stringify(value));
    };
    const missing = (what: string): void => {
      if (response !== null) fail(response, 404, { reason: 'notFound', message: `Not found: ${what}` });
    };
    if (kind === 'jobs') {
      const job = this.#jobs.get(name);
      if (job === undefined) missing(`Job ${name}`);
      else answer(job);
    } else if (kind === 'queries') {
      answer(this.#rowsOf(name));
    } else if (name !== this.dataset) {
      missing(`Dataset ${PROJECT}:${name}`);
    } else if (table === undefined && path.endsWith('/tables')) {
      const names = await this.sql('SELECT table_name FROM duckdb_tables()');
      const tables = names.map((tableId) => ({
        tableReference: { projectId: PROJECT, datasetId: name, tableId },
      }));
      answer({ kind: 'bigquery#tableList', tables, totalItems: tables.length });
    } else if (table === undefined) {
      answer({ kind: 'bigquery#dataset', datasetReference: { datasetId: name }, location: LOCATION });
    } else if ((await this.sql(`SELECT 1 FROM duckdb_tables() WHERE table_name = '${table}'`)).length === 0) {
      missing(`Table ${PROJECT}:${name}.${table}`);
    } else if (method === 'DELETE') {
      await this.#connection.run(`DROP TABLE "${table}"`);
      response?.writeHead(204).end();
    } else {
      if (method === 'PATCH') {
        const { expirationTime } = JSON.parse(body.toString()) as { expirationTime: string };
        this.expiring.set(table, Number(expirationTime));
      }
      answer({ kind: 'bigquery#table', tableReference: { tableId: table } });
    }
  }

  #rowsOf(jobId: string): object {
    const { names, rows } = this.#results.get(jobId) ?? { names: [], rows: [] };
    const fields = names.map((name, at) => ({
      name,
      type: ['bigint', 'number'].includes(typeof rows[0]?.[at]) ? 'INTEGER' : 'STRING',
      mode: 'NULLABLE',
    }));
    return {
      kind: 'bigquery#getQueryResultsResponse',
      jobReference: { projectId: PROJECT, jobId, location: LOCATION },
      jobComplete: true,
      totalRows: String(rows.length),
      schema: { fields },
      rows: rows.map((row) => ({ f: row.map((v) => ({ v: v === null ? null : (v as bigint).toString() })) })),
    };
  }
}

function end(job: JobResource, error: ErrorProto | null): void {
  job.status = error === null ? { state: 'DONE' } : { state: 'DONE', errorResult: error, errors: [error] };
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=UTF-8' }).end(body);
}

function fail(response: ServerResponse, status: number, { reason, message }: ErrorProto): void {
  const errors = [{ message, domain: 'global', reason }];
  send(response, status, JSON.stringify({ error: { code: status, message, errors } }));
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** The two parts of `multipart/related`: what the job is, and what is uploaded. */
function partsOf(request: IncomingMessage, body: Buffer): { metadata: Buffer; media: Buffer } {
  const [, boundary = ''] = /boundary="?([^";]+)/.exec(request.headers['content-type'] ?? '') ?? [];
  const marks: number[] = [];
  for (let at = body.indexOf(`--${boundary}`); at >= 0; at = body.indexOf(`--${boundary}`, at + 1))
    marks.push(at);
  const [metadata, media] = marks.slice(0, 2).map((mark, nth) => {
    const from = body.indexOf('\r\n\r\n', mark) + 4;
    return body.subarray(from, (marks[nth + 1] as number) - 2);
  });
  if (metadata === undefined || media === undefined) throw new Error('an upload without its two parts');
  return { metadata, media };
}
