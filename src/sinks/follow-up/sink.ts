import { hash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DONE, finishedTask, pullMeals } from '../../history/backfill/pull-meals.ts';
import { pullReference } from '../../history/backfill/reference.ts';
import type { Resource } from '../../history/backfill/resources.ts';
import { folderError, MillraceError, messageOf } from '../../core/errors.ts';
import type { Envelope } from '../../core/event.ts';
import type { IncomingMessage } from '../../core/incoming.ts';
import {
  DELIVERED,
  type Delivery,
  type Inlet,
  type SendResult,
  type Sink,
  type SinkContext,
} from '../../core/sink.ts';
import { Tally } from '../../lib/tally.ts';
import { WorkFolder, writeState } from '../../lib/work-folder.ts';
import { ServiceClient } from '../../history/service/client.ts';
import { ServiceError } from '../../history/service/errors.ts';
import { keyOf, readAnnouncement, type ChangedJob, type Completion } from './announcement.ts';
import type { FollowUpOptions } from './config.ts';

export { parseOptions, optionsSchema, describe } from './config.ts';

export function createSink(options: FollowUpOptions, context: SinkContext): Sink {
  return new FollowUpSink(options, context);
}

const NOTHING_NAMED = { users: [], zipCodes: [], labTests: [], addOns: [], jobs: [], labs: [] };

/** Of the events it makes. */
const SOURCE = 'follow-up';

/**
 * Does what announcements call for, as far as the service has an operation for it: the meals of a
 * `historical.data.meal.created` event, exactly that range of that user and provider, and the job of a
 * `lab_report.parsing_job.updated` one. Each becomes tables, once however often it is announced, also after a restart. A
 * pull's folder is there whole or not at all, and its `done.json` is the memory of it. With `events` every meal goes into
 * the journal as well, before the pull counts as done; what an attempt that failed has put there is known there when the
 * next one comes. What no operation reads is counted by its type and named in the log once.
 */
export class FollowUpSink implements Sink {
  readonly limits = {
    batchCount: 8,
    batchBytes: 1024 * 1024,
    eventBytes: Number.POSITIVE_INFINITY,
    inFlight: 2,
    order: 'none',
    batchBy: 'mixed',
    // A pull fetches years of a user, page by page, each with a time-out of its own.
    sendTimeout: 3_600_000,
  } as const;

  readonly #folder: string;
  readonly #service: ServiceClient;
  readonly #context: SinkContext;
  readonly #events: boolean;
  /** Announcements of what cannot be read, by event type. */
  readonly #skipped = new Tally();
  /** Running pulls, by key: a repetition waits for the first. */
  readonly #running = new Map<string, Promise<SendResult>>();

  constructor({ path, events, ...service }: FollowUpOptions, context: SinkContext) {
    this.#folder = resolve(path);
    this.#events = events;
    this.#context = context;
    // The dispatcher owns the retrying, so that a service in trouble shows in `status`.
    this.#service = new ServiceClient({ ...service, attempts: 1 });
  }

  /** @throws MillraceError folder_unwritable, config_invalid */
  async open(): Promise<void> {
    const { name, inlet } = this.#context;
    if (this.#events && inlet === undefined)
      throw new MillraceError('config_invalid', `sinks.${name}.events: needs a receiver with a journal`);
    try {
      await mkdir(this.#folder, { recursive: true });
    } catch (error) {
      throw folderError(this.#folder, error);
    }
  }

  send(batch: readonly Delivery[], signal: AbortSignal): Promise<SendResult[]> {
    return Promise.all(batch.map(({ event }) => this.#follow(event, signal)));
  }

  close(): Promise<void> {
    return this.#service.close();
  }

  skipped(): Iterable<readonly [string, number]> {
    return this.#skipped;
  }

  async #follow(event: Delivery['event'], signal: AbortSignal): Promise<SendResult> {
    const found = readAnnouncement(event);
    if (found === null) return DELIVERED;
    if (typeof found === 'string') return { status: 'refused', code: 'not_a_completion', reason: found };
    if (found.kind === 'unreadable') return this.#skip(found.what);
    const key = keyOf(found);
    let pull = this.#running.get(key);
    if (pull === undefined) {
      const folder = join(this.#folder, key);
      pull = this.#pull(found, folder, event, signal).finally(() => this.#running.delete(key));
      this.#running.set(key, pull);
    }
    return pull;
  }

  #skip(what: string): SendResult {
    const { name, log } = this.#context;
    if (this.#skipped.get(what) === 0)
      log.warn(
        { sink: name, type: what },
        'the service has no operation that reads this; it is only counted',
      );
    this.#skipped.add(what);
    return DELIVERED;
  }

  async #meals(
    completion: Completion,
    folder: string,
    { team, clientUser }: Delivery['event'],
    signal: AbortSignal,
  ): Promise<object> {
    const whose = { team, user: completion.user, clientUser };
    const _loaded_at = new Date(this.#context.clock.now()).toISOString();
    const given = { ...idsOf(whose), _loaded_at };
    let events = 0;
    const onMeals = async (pulled: readonly Buffer[]): Promise<void> => {
      await this.#journal(pulled, whose);
      events += pulled.length;
    };
    const extras = { given, ...(this.#events ? { onMeals } : {}) };
    const { meals, rejects } = await pullMeals(this.#service, completion, folder, signal, extras);
    return { meals, rejects, events };
  }

  async #job(
    { job, user }: ChangedJob,
    folder: string,
    { team, clientUser }: Delivery['event'],
    signal: AbortSignal,
  ): Promise<object> {
    const given = idsOf({ team, user, clientUser });
    const resource: Resource = {
      table: 'parsing_jobs',
      fetch: async function* ({ labs }) {
        let text = '';
        await labs.parsingJob(job, { signal, onText: (written) => (text = written) });
        yield { text: `[${text}]`, given };
      },
    };
    const pull = { query: NOTHING_NAMED, output: folder, now: this.#context.clock.now(), signal };
    const summary = await pullReference(this.#service, resource, pull);
    await writeState(folder, DONE, summary);
    return { ...summary.rows, rejects: summary.rejects };
  }

  async #pull(
    found: Followed,
    folder: string,
    event: Delivery['event'],
    signal: AbortSignal,
  ): Promise<SendResult> {
    const { name, log } = this.#context;
    const { kind } = found;
    let own: WorkFolder | null = null;
    try {
      if (finishedTask(folder) !== null) return DELIVERED;
      // Beside a replay, or another receiver with the same tables: one of them pulls, the other finds it done.
      own = await WorkFolder.take(folder);
      if (finishedTask(folder) !== null) return DELIVERED;
      const done =
        found.kind === 'range'
          ? await this.#meals(found, folder, event, signal)
          : await this.#job(found, folder, event, signal);
      log.info({ sink: name, folder, ...done }, 'follow-up pull done');
      return DELIVERED;
    } catch (error) {
      return failureOf(error, kind);
    } finally {
      own?.release();
    }
  }

  async #journal(meals: readonly Buffer[], whose: Omit<Envelope, 'type'>): Promise<void> {
    const { inlet, clock } = this.#context;
    if (inlet === undefined) throw new Error('there is no journal to put the meals into');
    const names = inlet.fields();
    const now = clock.now();
    await inlet.take(
      SOURCE,
      meals.map((meal) => toEvent(meal, whose, names, now)),
    );
  }
}

/** Columns that an event fills, and no answer. */
function idsOf({ team, user, clientUser }: Omit<Envelope, 'type'>): Readonly<Record<string, string>> {
  const ids = { team_id: team, user_id: user, client_user_id: clientUser };
  return Object.fromEntries(Object.entries(ids).filter((pair): pair is [string, string] => pair[1] !== null));
}

/** What a meal of a follow-up pull is as an event: the same as one that the service sends by itself. */
const MEAL_TYPE = 'daily.data.meal.created';

/**
 * The event of one meal: the meal's exact bytes in the service's envelope. Its id is made of what it says, so that the
 * same meal, pulled again, is the same event, and a meal that has changed is another.
 * @param now milliseconds since the epoch
 */
function toEvent(
  meal: Buffer,
  { team, user, clientUser }: Omit<Envelope, 'type'>,
  names: ReturnType<Inlet['fields']>,
  now: number,
): IncomingMessage {
  const json = JSON.stringify;
  const before = `{${json(names.type)}:${json(MEAL_TYPE)},"data":`;
  const after = [
    [names.team, team],
    [names.user, user],
    [names.clientUser, clientUser],
  ].map(([name, value]) => `,${json(name)}:${json(value)}`);
  const id = hash('sha256', Buffer.concat([Buffer.from(json([team, user])), meal]), 'hex').slice(0, 32);
  return {
    body: Buffer.concat([Buffer.from(before), meal, Buffer.from(`${after.join('')}}`)]),
    encoding: null,
    properties: { 'idempotency-key': `meal_${id}` },
    receivedAt: now,
  };
}

/** Announcements that something is fetched for. */
type Followed = Completion | ChangedJob;

function failureOf(error: unknown, kind: Followed['kind']): SendResult {
  const reason = messageOf(error);
  if (error instanceof MillraceError) {
    // The journal may be full for a while.
    if (error.retryable) return { status: 'retry', reason };
    return { status: 'refused', code: 'not_a_completion', reason };
  }
  if (!(error instanceof ServiceError)) return { status: 'retry', reason };
  const wait = error.retryAfterMs === null ? {} : { delayMs: error.retryAfterMs };
  // A key that is refused, or a service that is down, concerns every pull. Parsing alone can be closed to a team.
  const isClosed = error.status === 403 && kind !== 'parsing_job';
  const whole = error.status === 401 || isClosed || error.status === 429 || error.status === null;
  if (whole || error.retryable) return { status: 'retry', reason, sink: whole, ...wait };
  return { status: 'refused', code: 'service_refused', reason };
}
