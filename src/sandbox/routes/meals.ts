import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { bound } from '../check.ts';
import { madeUpMeals } from '../made-up-meals.ts';
import { team, type Operation } from '../operation.ts';
import { userOf } from './users.ts';

const QUERY = z.object({
  start_date: bound('start'),
  end_date: bound('end').optional(),
  provider: z.string().optional(),
});

export const mealOperations: readonly Operation[] = [
  team(
    'get',
    '/v2/summary/meal/:user_id',
    'Meals of one user: one document, however long the range',
    async (call) => {
      const { world, response } = call;
      const { start_date: startMs, end_date, provider } = call.query(QUERY);
      const user = userOf(call);
      const meals = madeUpMeals(world.options, {
        user: user.id,
        // Data stays when a deletion is undone, without the connections.
        providers: user.sources,
        startMs,
        // To the end of the last second.
        endMs: (end_date ?? Number.MAX_SAFE_INTEGER - 1000) + 999,
        provider,
      });
      const there = world.options.data === 'ready' ? null : user.pulled;
      response.type('application/json');
      const cutAfter = response.locals['cut'] === true ? CUT_AFTER : Infinity;
      const document = Readable.from(documentOf(meals, there, cutAfter), { objectMode: false });
      // The client may close the connection at any time.
      await pipeline(document, response).catch(() => response.destroy());
      return null;
    },
  ),
];

/** Bytes after which a fault cuts a document: some meals. */
const CUT_AFTER = 2000;
/** Bytes of one write. */
const PIECE = 32_768;

async function* documentOf(
  meals: Iterable<object>,
  pulled: ReadonlySet<string> | null,
  cutAfter: number,
): AsyncGenerator<string> {
  let piece = '{"meals":[';
  let written = 0;
  let separator = '';
  for (const meal of meals) {
    if (pulled !== null && !pulled.has(providerOf(meal))) continue;
    piece += separator + JSON.stringify(meal);
    separator = ',';
    if (written + piece.length > cutAfter) {
      yield piece.slice(0, cutAfter);
      throw new Error('cut on purpose');
    }
    if (piece.length < PIECE) continue;
    written += piece.length;
    yield piece;
    piece = '';
  }
  if (cutAfter !== Infinity) throw new Error('cut on purpose');
  yield `${piece}]}`;
}

function providerOf(meal: object): string {
  const { source } = meal as { source: { provider?: string; slug?: string } };
  return source.provider ?? source.slug ?? '';
}
