import type { Readable } from 'node:stream';
import type { CallOptions } from './options.ts';
import { dateRange, text, uuid } from './inputs.ts';
import { Group, type Unknown } from './shape.ts';
import type { Call } from './transport.ts';

/** Which meals. A bare end day is read as 23:59:59, a bare start day as 00:00:00. */
export interface MealRange {
  /** `YYYY-MM-DD` or an ISO 8601 date-time. */
  readonly start: string;
  readonly end?: string;
  /** Provider identifier; without it, all. */
  readonly provider?: string;
}

/** Which fields are always there is not documented, so none is promised but the id. */
export interface Meal extends Unknown {
  readonly id: string;
}

export interface MealsDocument extends Unknown {
  readonly meals: readonly Meal[];
}

/** Meal summaries. There is no paging: a long range is one very large document. */
export class Meals extends Group {
  /** The whole document, parsed: for short ranges. @throws ServiceError, ServiceInputError */
  summary(user: string, range: MealRange, options: CallOptions = {}): Promise<MealsDocument> {
    return this.readList<MealsDocument>(callOf(user, range, options), 'meals');
  }

  /**
   * The document's bytes as they arrive, `{"meals":[…]}`, in constant memory. A failure after the first byte ends the
   * stream with a ServiceError; start over with a new call then, and throw away what came.
   */
  async stream(user: string, range: MealRange, options: CallOptions = {}): Promise<Readable> {
    return this.transport.stream(callOf(user, range, options));
  }
}

function callOf(user: string, { start, end, provider }: MealRange, options: CallOptions): Call {
  dateRange(start, end);
  const parameters = { user_id: uuid('user', user) };
  const query = { start_date: start, end_date: end, provider: text('provider', provider) };
  return { method: 'GET', path: 'mealSummary', parameters, query, ...options };
}
