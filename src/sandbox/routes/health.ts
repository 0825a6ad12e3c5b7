import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { bound, cursor, Refusal, uuid, writeCursor } from '../check.ts';
import type { Json } from '../made-up-health.ts';
import { groupsOf, SERIES, type Sample } from '../made-up-series.ts';
import { placeIn, SUMMARIES } from '../made-up-summaries.ts';
import { team, type Call, type Operation, type Reply } from '../operation.ts';
import type { Team } from '../teams.ts';
import { userOf } from './users.ts';

const QUERY = z.object({
  start_date: bound('start'),
  end_date: bound('end').optional(),
  provider: z.string().optional(),
});

/** Samples of a page. */
const PAGE = 500;
/** Bytes after which a fault cuts a document: some items. */
const CUT_AFTER = 2000;
/** Bytes of one write. */
const PIECE = 32_768;

export const healthOperations: readonly Operation[] = [
  team(
    'get',
    '/v2/summary/meal/:user_id',
    'Meals of one user: one document, however long the range',
    (call) => summary(call, 'meal', 'meals'),
  ),
  team('get', '/v2/summary/profile/:user_id', 'Profile of one user: one object, of no range', (call) => {
    const { provider } = call.query(QUERY.pick({ provider: true }));
    const range = { startMs: 0, endMs: Number.MAX_SAFE_INTEGER, provider };
    const user = userOf(call);
    const [profile] = call.world.health.summaries('profile', user, range);
    if (profile === undefined) throw new Refusal(404, 'No profile of this user');
    if (call.world.health.isPartial(user, provider)) call.response.status(206);
    return profile;
  }),
  team(
    'get',
    '/v2/summary/:resource/:user_id',
    `Summaries of one user: ${Object.keys(SUMMARIES).join(', ')}`,
    (call) => {
      const resource = resourceOf(call, SUMMARIES);
      return summary(call, resource, resource);
    },
  ),
  team(
    'get',
    '/v2/timeseries/:user_id/:resource/grouped',
    'A series of one user, page by page, grouped by provider',
    async (call) => {
      const {
        next_cursor,
        cursor: named,
        ...query
      } = call.query(QUERY.extend({ cursor, next_cursor: cursor }));
      const resource = resourceOf(call, SERIES);
      const user = userOf(call);
      const { health } = call.world;
      const page: Sample[] = [];
      let next: string | null = null;
      for (const sample of health.samples(resource, user, rangeOf(query), named ?? next_cursor)) {
        if (page.length === PAGE) {
          next = writeCursor(sample.place);
          break;
        }
        page.push(sample);
      }
      const groups = Object.fromEntries([...groupsOf(user, page)].map(([name, group]) => [name, [group]]));
      if (health.isPartial(user, query.provider)) call.response.status(206);
      const text = JSON.stringify({ groups, next, next_cursor: next });
      return stream(call, [text]);
    },
  ),
  team('get', '/v2/timeseries/sleep/:sleep_id/stream', 'Samples of one sleep', (call) =>
    Object.fromEntries(streamOf(call, 'sleep', ['hrv', 'heartrate', 'hypnogram', 'respiratory_rate'])),
  ),
  team(
    'get',
    '/v2/timeseries/workouts/:workout_id/stream',
    'Samples of one workout, an array for each kind',
    (call) => {
      const streams = streamOf(call, 'workouts', ['heartrate', 'distance']);
      const values = streams.map(([name, samples]) => [name, samples.map(({ value }) => value)] as const);
      const time = streams[0]?.[1].map(({ timestamp }) => Date.parse(String(timestamp)) / 1000);
      return { time, ...Object.fromEntries(values) };
    },
  ),
];

function streamOf({ world, bearer, path }: Call<Team>, resource: string, series: readonly string[]) {
  const { sleep_id, workout_id } = path(z.object({ sleep_id: uuid, workout_id: uuid }).partial());
  const id = sleep_id ?? workout_id ?? '';
  const { index, day } = placeIn(id);
  const [user] = world.users.after(bearer.id, index - 1);
  if (user?.index !== index) throw new Refusal(404, 'Not Found');
  return world.health.stream(resource, { user, day, id }, series);
}

function summary(call: Call<Team>, resource: string, list: string): Promise<Reply> {
  const query = call.query(QUERY);
  const user = userOf(call);
  const { health } = call.world;
  if (health.isPartial(user, query.provider)) call.response.status(206);
  return stream(call, documentOf(list, health.summaries(resource, user, rangeOf(query))));
}

function rangeOf({ start_date: startMs, end_date, provider }: z.infer<typeof QUERY>) {
  // To the end of the second that the last instant lies in.
  const endMs = end_date === undefined ? Infinity : Math.floor(end_date / 1000) * 1000 + 999;
  return { startMs, endMs, provider };
}

/** @throws Refusal 404 */
function resourceOf({ request }: Call<Team>, known: Readonly<Record<string, unknown>>): string {
  const resource = String(request.params['resource']);
  if (!Object.hasOwn(known, resource)) throw new Refusal(404, 'Not Found');
  return resource;
}

async function stream({ response }: Call<Team>, pieces: Iterable<string>): Promise<Reply> {
  response.type('application/json');
  const written = response.locals['cut'] === true ? cut(pieces) : pieces;
  // The client may close the connection at any time.
  await pipeline(Readable.from(written, { objectMode: false }), response).catch(() => response.destroy());
  return null;
}

function* documentOf(list: string, items: Iterable<Json>): Generator<string> {
  let piece = `{"${list}":[`;
  let separator = '';
  for (const item of items) {
    piece += separator + JSON.stringify(item);
    separator = ',';
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
  }
  yield `${piece}]}`;
}

/** A document that breaks off, and the connection with it. */
function* cut(pieces: Iterable<string>): Generator<string> {
  let text = '';
  for (const piece of pieces) {
    text += piece;
    if (text.length > CUT_AFTER) break;
  }
  yield text.slice(0, Math.min(CUT_AFTER, text.length - 1));
  throw new Error('cut on purpose');
}
