import { availableParallelism } from 'node:os';
import type { Places } from '../archive/places.ts';
import { ThreadPool, threadProgram } from '../lib/thread-pool.ts';
import type { GatheredValues } from './parquet/column-values.ts';
import type { EncodedGroup } from './parquet/row-group.ts';
import {
  type Job,
  jobRunner,
  type Outcome,
  type ShapedUnit,
  type ThreadData,
  type UnitTerms,
} from './shaping-jobs.ts';
import type { Source } from './archive-files.ts';
import { UNIT, type Unit } from './unit.ts';

/** Archive files of so many bytes become several units. */
const MUCH = 4 * 1024 * 1024;
/** From so many bytes on a third thread is faster: each needs 80 MB, and half a second of a core until its code is compiled. */
const VERY_MUCH = 64 * 1024 * 1024;

/** Shapes units in threads; a small export in this one. */
export class Shaping {
  readonly #terms: UnitTerms;
  /** Null until its size is known. */
  #pool: ThreadPool<Job, Outcome> | null = null;
  #threads = 2;
  #here: ((job: Job) => Outcome) | null = null;

  constructor(terms: UnitTerms) {
    this.#terms = terms;
  }

  /** Bytes of units that should be ready or in progress; one unit may be longer. */
  get ahead(): number {
    return (this.#threads + 1) * UNIT;
  }

  /** Starts the threads that sources of this size need. */
  async expect(sources: readonly Source[], places: Places): Promise<void> {
    let bytes = 0;
    for (const { root, file } of sources) {
      bytes += (await places.at(root).stat(file))?.bytes ?? 0;
      if (bytes >= VERY_MUCH) break;
    }
    if (this.#pool === null && bytes >= VERY_MUCH && availableParallelism() > 3) this.#threads = 3;
    if (bytes >= MUCH) this.#threadsAtWork().start();
  }

  /** @param isAll it is the only unit, for which threads are not started */
  async shape(unit: Unit, isAll: boolean): Promise<ShapedUnit> {
    const outcome = await this.#perform({ unit }, isAll, [unit.text.buffer]);
    if (!('shaped' in outcome)) throw new TypeError('a unit became something else');
    return outcome.shaped;
  }

  async join(table: string, parts: readonly (readonly GatheredValues[])[]): Promise<EncodedGroup> {
    const outcome = await this.#perform({ table, parts }, true, []);
    if (!('group' in outcome)) throw new TypeError('columns became something else');
    return outcome.group;
  }

  async close(): Promise<void> {
    await this.#pool?.close();
  }

  async #perform(job: Job, isAll: boolean, transferred: readonly ArrayBuffer[]): Promise<Outcome> {
    if (!isAll || this.#pool !== null) return this.#threadsAtWork().run(job, transferred);
    this.#here ??= jobRunner(this.#terms);
    return this.#here(job);
  }

  #threadsAtWork(): ThreadPool<Job, Outcome> {
    if (this.#pool !== null) return this.#pool;
    const { tables, ...terms } = this.#terms;
    const data: ThreadData = { ...terms, documents: tables.documents };
    return (this.#pool = new ThreadPool(
      threadProgram('shaping-thread', import.meta.url),
      data,
      this.#threads,
    ));
  }
}
