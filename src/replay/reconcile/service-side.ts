import { countTasks, tasksOf, type BackfillPlan, type Task } from '../../history/backfill/plan.ts';
import { MEAL_TABLES, shapeMeals } from '../../history/backfill/meals-document.ts';
import { withTries } from '../../history/backfill/tries.ts';
import { systemClock } from '../../core/clock.ts';
import { RowFiles } from '../../tables/ndjson/row-files.ts';
import type { ServiceClient } from '../../history/service/client.ts';
import type { MealIds } from './meal-ids.ts';
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
    /** As the service says it; null when it does not. */
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
  const compare = async (files: RowFiles | null): Promise<ServiceTally> => {
    const tally = new ServiceTally(options.held, files);
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

/** What came of an answer that was not whole is taken back before the next try. */
async function compareTask(
  task: Task,
  { service, signal }: ServiceOptions,
  tally: ServiceTally,
): Promise<void> {
  const { user } = task;
  const before = tally.place();
  const once = async (): Promise<void> => {
    await tally.backTo(before);
    await shapeMeals(service, task, {
      given: { user_id: user },
      write: (table, rows) => tally.rows(table, rows, user),
      onReject: () => tally.reject(),
      signal,
    });
  };
  await withTries(once, systemClock, signal);
}

interface Tallied {
  readonly meals: number;
  readonly missing: number;
  readonly rejects: number;
  readonly named: ServiceReport['missing_meals'];
  readonly filled: Readonly<Record<string, number>>;
}

/** Goes through the rows of the answers; those of missing meals stay. */
class ServiceTally {
  #tallied: Tallied = { meals: 0, missing: 0, rejects: 0, named: [], filled: {} };
  readonly #held: MealIds;
  readonly #files: RowFiles | null;

  constructor(held: MealIds, files: RowFiles | null) {
    this.#held = held;
    this.#files = files;
  }

  /** How far it is, for `backTo`. */
  place(): { readonly tallied: Tallied; readonly files: ReadonlyMap<string, number> | null } {
    return { tallied: this.#tallied, files: this.#files?.place() ?? null };
  }

  /** Takes back what came since. */
  async backTo({ tallied, files }: ReturnType<ServiceTally['place']>): Promise<void> {
    this.#tallied = tallied;
    if (files !== null) await this.#files?.backTo(files);
  }

  reject(): void {
    this.#tallied = { ...this.#tallied, rejects: this.#tallied.rejects + 1 };
  }

  async rows(table: string, rows: Buffer, user: string): Promise<void> {
    const kept: string[] = [];
    for (const line of rows.toString().split('\n')) {
      if (line === '') continue;
      const row = JSON.parse(line) as { id?: string; meal_id?: string; timestamp?: string };
      const id = (table === 'meals' ? row.id : row.meal_id) ?? '';
      if (this.#count(table, { id, user_id: user, timestamp: row.timestamp ?? null })) kept.push(`${line}\n`);
    }
    if (kept.length === 0 || this.#files === null) return;
    const { filled } = this.#tallied;
    this.#tallied = {
      ...this.#tallied,
      filled: { ...filled, [table]: (filled[table] ?? 0) + kept.length },
    };
    await this.#files.write(table, Buffer.from(kept.join('')));
  }

  report(users: number, files: readonly string[] | null): ServiceReport {
    const { meals, missing, rejects, named, filled } = this.#tallied;
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

  /** True when the meal is missing. */
  #count(table: string, meal: ServiceReport['missing_meals'][number]): boolean {
    const isMissing = !this.#held.has(meal.id);
    if (table !== 'meals') return isMissing;
    const { meals, missing, named } = this.#tallied;
    this.#tallied = {
      ...this.#tallied,
      meals: meals + 1,
      missing: missing + (isMissing ? 1 : 0),
      named: isMissing && named.length < NAMED ? [...named, meal] : named,
    };
    return isMissing;
  }
}
