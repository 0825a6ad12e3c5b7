import { countTasks, tasksOf, type BackfillPlan, type Task } from '../../history/backfill/plan.ts';
import { MEAL_TABLES, shapeDocument } from '../../history/backfill/document.ts';
import { withTries } from '../../history/backfill/tries.ts';
import { systemClock } from '../../core/clock.ts';
import { RowFiles } from '../../tables/ndjson/row-files.ts';
import type { ServiceClient } from '../../history/service/client.ts';
import type { MealIds } from './meal-ids.ts';
import { NAMED } from './report.ts';

export interface ServiceOptions {
  readonly service: ServiceClient;
  /** Users and days of the meals, not of their receipt. */
  readonly plan: BackfillPlan;
  readonly held: MealIds;
  /** Folder for tables of the missing rows; null only compares. */
  readonly fill: string | null;
  readonly signal: AbortSignal;
  readonly onTask?: (done: number, total: number, task: Task) => void;
}

export interface ServiceReport {
  readonly users: number;
  /** Meals of the service in the range. */
  readonly meals: number;
  readonly held: number;
  readonly missing: number;
  /** The first ones that are missing. */
  readonly missing_meals: readonly {
    readonly id: string;
    readonly user_id: string;
    /** By the service; null if unknown. */
    readonly timestamp: string | null;
  }[];
  /** Invalid rows of the answers. */
  readonly rejects: number;
  /** Rows written by table, and the files; null without `fill`. */
  readonly filled: {
    readonly rows: Readonly<Record<string, number>>;
    readonly files: readonly string[];
  } | null;
}

/**
 * Compares the meals of the service with the known ones. With `fill` it writes the rows of missing meals, in tables as a
 * backfill makes them.
 * @throws ServiceError; MillraceError folder_unwritable
 */
export async function compareWithService(options: ServiceOptions): Promise<ServiceReport> {
  const { plan, fill } = options;
  const compare = async (files: RowFiles | null): Promise<RowsComparison> => {
    const tally = new RowsComparison(options.held, files);
    const total = countTasks(plan);
    let done = 0;
    for (const task of tasksOf(plan)) {
      options.signal.throwIfAborted();
      options.onTask?.(done, total, task);
      await compareTask(task, options, tally);
      done += 1;
    }
    return tally;
  };
  if (fill === null) return (await compare(null)).report(plan.users.length, null);
  const { made, paths } = await RowFiles.fill(fill, MEAL_TABLES, compare);
  return made.report(plan.users.length, paths);
}

/** Before the next try, the rows of an incomplete answer are removed. */
async function compareTask(
  task: Task,
  { service, signal }: ServiceOptions,
  tally: RowsComparison,
): Promise<void> {
  const { user } = task;
  const before = tally.place();
  const once = async (): Promise<void> => {
    await tally.backTo(before);
    await shapeDocument(service, task, {
      given: { user_id: user },
      write: (table, rows) => tally.rows(table, rows, user),
      onReject: () => tally.reject(),
      signal,
    });
  };
  await withTries(once, systemClock, signal);
}

interface RowCounts {
  meals: number;
  missing: number;
  rejects: number;
  readonly named: ServiceReport['missing_meals'][number][];
  /** Rows written by table. */
  readonly filled: Record<string, number>;
}

/** Counts the rows of the answers, and writes those of missing meals. */
class RowsComparison {
  #counts: RowCounts = { meals: 0, missing: 0, rejects: 0, named: [], filled: {} };
  readonly #held: MealIds;
  readonly #files: RowFiles | null;

  constructor(held: MealIds, files: RowFiles | null) {
    this.#held = held;
    this.#files = files;
  }

  /** A state for `backTo`. */
  place(): { readonly counts: RowCounts; readonly files: ReadonlyMap<string, number> | null } {
    return { counts: structuredClone(this.#counts), files: this.#files?.sizes() ?? null };
  }

  /** Restores the state. */
  async backTo({ counts, files }: ReturnType<RowsComparison['place']>): Promise<void> {
    this.#counts = structuredClone(counts);
    if (files !== null) await this.#files?.truncateTo(files);
  }

  reject(): void {
    this.#counts.rejects += 1;
  }

  async rows(table: string, rows: Buffer, user: string): Promise<void> {
    const kept: string[] = [];
    for (const line of rows.toString().split('\n')) {
      if (line === '') continue;
      const row = JSON.parse(line) as { id?: string; meal_id?: string; timestamp?: string };
      const id = (table === 'meals' ? row.id : row.meal_id) ?? '';
      const isMissing = !this.#held.has(id);
      if (isMissing) kept.push(`${line}\n`);
      if (table === 'meals') this.#count({ id, user_id: user, timestamp: row.timestamp ?? null }, isMissing);
    }
    if (kept.length === 0 || this.#files === null) return;
    const { filled } = this.#counts;
    filled[table] = (filled[table] ?? 0) + kept.length;
    await this.#files.write(table, Buffer.from(kept.join('')));
  }

  report(users: number, files: readonly string[] | null): ServiceReport {
    const { meals, missing, rejects, named, filled } = this.#counts;
    return {
      users,
      meals,
      held: meals - missing,
      missing,
      missing_meals: named,
      rejects,
      filled: files === null ? null : { rows: filled, files },
    };
  }

  #count(meal: ServiceReport['missing_meals'][number], isMissing: boolean): void {
    const counts = this.#counts;
    counts.meals += 1;
    if (!isMissing) return;
    counts.missing += 1;
    if (counts.named.length < NAMED) counts.named.push(meal);
  }
}
