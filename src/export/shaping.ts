import { availableParallelism } from 'node:os';
import type { Places } from '../archive/places.ts';
import { ThreadPool, threadProgram } from '../lib/thread-pool.ts';
import type { GatheredValues } from './parquet/column-values.ts';
import type { EncodedGroup } from './parquet/row-group.ts';
import { type Job, type Outcome, shapesJobs, type ThreadData } from './shaping-jobs.ts';
import type { ShapedUnit, UnitTerms } from './shape-unit.ts';
import type { Source } from './archive-files.ts';
import { UNIT, type Unit } from './unit.ts';

/** Bytes of files of an archive that surely become several units. */
const MUCH = 4 * 1024 * 1024;
/** Each thread takes 80 MB, and half a second of a core until its code is compiled: a third one pays from so many bytes on. */
const VERY_MUCH = 64 * 1024 * 1024;

/** Shapes units in threads; what there is little of, in this one. */
export class Shaping {
  readonly #terms: UnitTerms;
  /** Null until its size is known. */
  #pool: ThreadPool<Job, Outcome> | null = null;
  #threads = 2;
  #here: ((job: Job) => Outcome) | null = null;

  constructor(terms: UnitTerms) {
    this.#terms = terms;
  }

  /** Bytes of units that are worth having at hand, those being shaped included; one alone may be longer. */
  get ahead(): number {
    return (this.#threads + 1) * UNIT;
  }

  /** Says what is to come, so that threads are ready when it comes. */
  async expect(sources: readonly Source[], places: Places): Promise<void> {
    let bytes = 0;
    for (const { root, file } of sources) {
      bytes += (await places.at(root).stat(file))?.bytes ?? 0;
      if (bytes >= VERY_MUCH) break;
    }
    if (this.#pool === null && bytes >= VERY_MUCH && availableParallelism() > 3) this.#threads = 3;
    if (bytes >= MUCH) this.#threadsAtWork().start();
  }

  /** @param isAll there is no other unit beside it: not worth starting threads for */
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

  async #perform(job: Job, isAll: boolean, handOver: readonly ArrayBuffer[]): Promise<Outcome> {
    if (!isAll || this.#pool !== null) return this.#threadsAtWork().run(job, handOver);
    this.#here ??= shapesJobs(this.#terms);
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
