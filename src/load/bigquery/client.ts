import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { BigQuery, BigQueryOptions, Job } from '@google-cloud/bigquery';
import { MillraceError } from '../../core/errors.ts';
import { installCommand } from '../../lib/installed.ts';
import { isMissing, isPassing, isThere, JobError, toMillraceError } from './failure.ts';

const PACKAGE = '@google-cloud/bigquery';

export interface Place {
  readonly project: string;
  readonly dataset: string;
  /** How Google is reached, where it is not as everywhere. */
  readonly client?: BigQueryOptions;
  readonly patience?: Patience;
  /** Ends all waiting; a job that runs goes on, and the next run finds what it did. */
  readonly signal?: AbortSignal;
}

interface Patience {
  /** How often something is tried again that may pass. */
  readonly tries: number;
  /** Milliseconds until the second try; each further one takes twice as long. */
  readonly pause: number;
}

const PATIENCE: Patience = { tries: 5, pause: 500 };
/** Milliseconds between two looks at a job: at first, and at most. */
const POLL = { first: 200, most: 3000 };

export interface StagedColumn {
  readonly name: string;
  readonly type: 'STRING' | 'INT64';
}

type Row = Readonly<Record<string, unknown>>;

/** Jobs in one dataset. A job runs once however often it is asked for: its id is given, and BigQuery takes an id once. */
export class BigQueryClient {
  readonly #bigquery: BigQuery;
  readonly #place: Place;
  /** Where the dataset lies; jobs have to run there. */
  readonly #location: string;

  private constructor(bigquery: BigQuery, place: Place, location: string) {
    this.#bigquery = bigquery;
    this.#place = place;
    this.#location = location;
  }

  /** @throws MillraceError usage where the SDK is not installed; database_refused, database_unavailable */
  static async open(place: Place): Promise<BigQueryClient> {
    const { project, dataset, client } = place;
    const name = `${project}.${dataset}`;
    const { BigQuery } = await import('@google-cloud/bigquery').catch((error: unknown) => {
      throw new MillraceError(
        'usage',
        `the client of BigQuery is not installed beside millrace: ${installCommand(PACKAGE)}`,
        {
          cause: error,
        },
      );
    });
    try {
      // Retries are made here: those of the SDK do not know what a job id of ours means.
      const bigquery = new BigQuery({ ...client, projectId: project, autoRetry: false });
      const [metadata] = await patiently(place, () => bigquery.dataset(dataset).getMetadata());
      return new BigQueryClient(bigquery, place, String((metadata as Row)['location']));
    } catch (error) {
      if (!isMissing(error)) throw toMillraceError(name, error);
      throw new MillraceError(
        'database_refused',
        `${name}: create the dataset first, in the region where its rows are to stay`,
        { cause: error },
      );
    }
  }

  /** Names of all tables and views. */
  async tables(): Promise<string[]> {
    const { dataset } = this.#place;
    const [tables] = await this.#patiently(() => this.#bigquery.dataset(dataset).getTables());
    return tables.map(({ id }) => String(id));
  }

  async dropTable(name: string): Promise<void> {
    await this.#patiently(() => this.#table(name).delete({ ignoreNotFound: true }));
  }

  /**
   * Runs statements. @returns rows of the last of them
   * @param id of the job; one that has succeeded under this id is not run again, and its rows are returned
   * @param isDone whether what such a job did is still so: a dataset may have been made anew since
   */
  async run(
    sql: string,
    id = `millrace_${randomUUID()}`,
    isDone: () => Promise<boolean> = () => Promise.resolve(true),
  ): Promise<readonly Row[]> {
    const { project, dataset } = this.#place;
    const begin = async (jobId: string): Promise<void> => {
      const defaultDataset = { projectId: project, datasetId: dataset };
      await this.#bigquery.createQueryJob({ query: sql, jobId, defaultDataset, location: this.#location });
    };
    const job = await this.#job(id, begin, isDone);
    const [rows] = await this.#patiently(() => job.getQueryResults());
    return rows as readonly Row[];
  }

  /**
   * Makes a table of some lines of JSON in place of what has this name.
   * @param packed with gzip
   * @param lifetime milliseconds after which BigQuery removes it, should nobody else have
   */
  async upload(
    name: string,
    columns: readonly StagedColumn[],
    packed: Buffer,
    lifetime: number,
  ): Promise<void> {
    const table = this.#table(name);
    const begin = async (jobId: string): Promise<void> => {
      const stream = table.createWriteStream({
        jobId,
        sourceFormat: 'NEWLINE_DELIMITED_JSON',
        schema: { fields: columns.map((column) => ({ ...column, mode: 'REQUIRED' })) },
        writeDisposition: 'WRITE_TRUNCATE',
      });
      const complete = once(stream, 'complete');
      stream.end(packed);
      await complete;
    };
    await this.#job(`millrace_${randomUUID()}`, begin, () => Promise.resolve(true));
    await this.#patiently(() => table.setMetadata({ expirationTime: String(Date.now() + lifetime) }));
  }

  #table(name: string): ReturnType<ReturnType<BigQuery['dataset']>['table']> {
    return this.#bigquery.dataset(this.#place.dataset).table(name, { location: this.#location });
  }

  async #job(
    name: string,
    begin: (id: string) => Promise<void>,
    isDone: () => Promise<boolean>,
  ): Promise<Job> {
    let failures = 0;
    for (let nth = 0; ; nth += 1) {
      // An id is used up by a job that failed.
      const id = nth === 0 ? name : `${name}_${nth}`;
      const job = this.#bigquery.job(id, { location: this.#location });
      const isEarlier = await this.#begin(() => begin(id));
      const error = await this.#outcome(job);
      if (error === null && (!isEarlier || (await isDone()))) return job;
      if (error === null || isEarlier) continue;
      if (!isPassing(error) || failures >= (this.#place.patience ?? PATIENCE).tries) throw error;
      await pauseAfter(this.#place, failures);
      failures += 1;
    }
  }

  /** @returns true where a job of that id was there already: of a run that was killed, or a request whose answer was lost */
  async #begin(begin: () => Promise<void>): Promise<boolean> {
    try {
      await this.#patiently(begin);
      return false;
    } catch (error) {
      if (isThere(error)) return true;
      throw error;
    }
  }

  /** Waits for a job. @returns what it failed with */
  async #outcome(job: Job): Promise<JobError | null> {
    for (let pause = POLL.first; ; pause = Math.min(pause * 2, POLL.most)) {
      const [metadata] = await this.#patiently(() => job.getMetadata());
      const { status } = metadata as { status: { state: string; errorResult?: object } };
      if (status.state === 'DONE')
        return status.errorResult === undefined ? null : new JobError(status.errorResult);
      await wait(pause, undefined, waiting(this.#place));
    }
  }

  #patiently<T>(work: () => Promise<T>): Promise<T> {
    return patiently(this.#place, work);
  }
}

/** Asks again for as long as it may pass. */
async function patiently<T>(place: Place, work: () => Promise<T>): Promise<T> {
  const { tries } = place.patience ?? PATIENCE;
  for (let failures = 0; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error) || failures >= tries) throw error;
      await pauseAfter(place, failures);
    }
  }
}

async function pauseAfter(place: Place, failures: number): Promise<void> {
  const { pause } = place.patience ?? PATIENCE;
  await wait(pause * 2 ** failures, undefined, waiting(place));
}

/** How a wait ends early. */
function waiting({ signal }: Place): { readonly signal?: AbortSignal } {
  signal?.throwIfAborted();
  return signal === undefined ? {} : { signal };
}
