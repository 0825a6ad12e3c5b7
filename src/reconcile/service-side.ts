import { countTasks, tasksOf, type BackfillPlan, type Task } from '../backfill/plan.ts';
import { MEAL_TABLES } from '../backfill/meals-document.ts';
import { RowFiles } from '../ndjson/row-files.ts';
import { shapeText } from '../ndjson/shape-text.ts';
import type { ServiceClient } from '../service/client.ts';
import type { MealIds, MealRef } from './meal-ids.ts';
import { NAMED } from './report.ts';

export interface ServiceOptions {
  readonly service: ServiceClient;
  /** Whose meals, and of which days: days of the meals, not of their receipt. */
  readonly plan: BackfillPlan;
  readonly held: MealIds;
  /** Folder for tables with the rows that are missing, and no others; null only compares. */
  readonly fill: string | null;
  readonly signal: AbortSignal;
  readonly onTask?: (done: number, total: number, task: Task) => void;
}

export interface ServiceReport {
  readonly users: number;
  /** Meals the service has in the range. */
  readonly meals: number;
  readonly held: number;
  readonly missing: number;
  /** The first ones that are missing. */
  readonly missing_meals: readonly {
    readonly id: string;
    readonly user_id: string;
    readonly timestamp: string | null;
  }[];
  /** Rows the service's answer had that are not fit. */
  readonly rejects: number;
  /** Rows written, by table, and where; null when nothing was to be filled. */
  readonly filled: {
    readonly rows: Readonly<Record<string, number>>;
    readonly files: readonly string[];
  } | null;
}

/**
 * Asks the service for the meals of a range and holds their ids against those that are held. What it says streams by;
 * with `fill` the rows of the missing meals stay, in tables as a backfill makes them.
 * @throws ServiceError; MillraceError folder_unwritable
 */
export async function compareWithService(options: ServiceOptions): Promise<ServiceReport> {
  const { plan, fill } = options;
  const files = fill === null ? null : await RowFiles.open(fill, MEAL_TABLES);
  const tally = new ServiceTally(options.held, files);
  try {
    const total = countTasks(plan);
    let done = 0;
    for (const task of tasksOf(plan)) {
      options.signal.throwIfAborted();
      options.onTask?.(done, total, task);
      await compareTask(task, options, tally);
      done += 1;
    }
    const paths = files === null ? null : await files.finish();
    return tally.report(plan.users.length, paths);
  } catch (error) {
    await files?.discard();
    throw error;
  }
}

async function compareTask(
  { user, provider, start, end }: Task,
  { service, signal }: ServiceOptions,
  tally: ServiceTally,
): Promise<void> {
  const range = { start, end, ...(provider === null ? {} : { provider }) };
  const document = await service.meals.stream(user, range, { signal });
  await shapeText(document as AsyncIterable<Buffer>, {
    tables: MEAL_TABLES,
    given: { user_id: user },
    write: (table, rows) => tally.rows(table, rows, user),
    onReject: (reject) => {
      if (reject.code === 'cut') throw new Error(`the answer for ${user} was cut short`);
      tally.rejects += 1;
    },
    signal,
  });
}

/** Goes through the rows of the answers; those of missing meals stay. */
class ServiceTally {
  rejects = 0;
  #meals = 0;
  #missing = 0;
  readonly #named: MealRef[] = [];
  readonly #filled: Record<string, number> = {};
  readonly #held: MealIds;
  readonly #files: RowFiles | null;

  constructor(held: MealIds, files: RowFiles | null) {
    this.#held = held;
    this.#files = files;
  }

  async rows(table: string, rows: Buffer, user: string): Promise<void> {
    const kept: string[] = [];
    for (const line of rows.toString().split('\n')) {
      if (line === '') continue;
      const row = JSON.parse(line) as { id?: string; meal_id?: string; timestamp?: string };
      const id = (table === 'meals' ? row.id : row.meal_id) ?? '';
      if (this.#count(table, { id, user, timestamp: row.timestamp ?? null })) kept.push(`${line}\n`);
    }
    if (kept.length === 0 || this.#files === null) return;
    this.#filled[table] = (this.#filled[table] ?? 0) + kept.length;
    await this.#files.write(table, Buffer.from(kept.join('')));
  }

  report(users: number, files: readonly string[] | null): ServiceReport {
    return {
      users,
      meals: this.#meals,
      held: this.#meals - this.#missing,
      missing: this.#missing,
      missing_meals: this.#named.map(({ id, user, timestamp }) => ({ id, user_id: user, timestamp })),
      rejects: this.rejects,
      filled: files === null ? null : { rows: this.#filled, files },
    };
  }

  /** True when the meal is missing. */
  #count(table: string, meal: MealRef): boolean {
    const missing = !this.#held.has(meal.id);
    if (table !== 'meals') return missing;
    this.#meals += 1;
    if (!missing) return false;
    this.#missing += 1;
    if (this.#named.length < NAMED) this.#named.push(meal);
    return true;
  }
}
