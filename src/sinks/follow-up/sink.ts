import { hash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { folderError, MillraceError, messageOf } from '../../core/errors.ts';
import type { Envelope, JournalEvent } from '../../core/event.ts';
import type { IncomingMessage } from '../../core/ingest.ts';
import {
  DELIVERED,
  type Delivery,
  type Inlet,
  type SendResult,
  type Sink,
  type SinkContext,
} from '../../core/sink.ts';
import { DONE, fetchTask, isFinishedTask } from '../../history/backfill/fetch-task.ts';
import { pullReference } from '../../history/backfill/reference.ts';
import type { Resource } from '../../history/backfill/resources.ts';
import { resourcesWith, type Resources } from '../../history/resources.ts';
import { ServiceClient } from '../../history/service/client.ts';
import { ServiceError } from '../../history/service/errors.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { Tally } from '../../lib/tally.ts';
import { WorkFolder, writeState } from '../../lib/work-folder.ts';
import { keyOf, readAnnouncement, type ChangedJob, type Completion } from './announcement.ts';
import type { FollowUpOptions } from './config.ts';

export function createSink(options: FollowUpOptions, context: SinkContext): Sink {
  return new FollowUpSink(options, context);
}

const NO_NAMES = { users: [], zipCodes: [], labTests: [], addOns: [], jobs: [], labs: [] };

/** Source of the events it makes. */
const SOURCE = 'follow-up';

/** Ids of the announcing event, for the rows and events of its pull. */
type Owner = Omit<Envelope, 'type'>;

/**
 * Pulls what announcements name: the data of a `historical.data.<resource>.created` event, exactly that range of that user and
 * provider, and the job of a `lab_report.parsing_job.updated` one. Each announcement becomes tables once, also after repetitions and restarts:
 * the folder of a pull is complete when its `done.json` is there. With `events` every item goes into the journal too, before the pull
 * is done. Announcements that no operation reads are counted by type, and logged once.
 */
export class FollowUpSink implements Sink {
  readonly limits = {
    batchCount: 8,
    batchBytes: 1024 * 1024,
    eventBytes: Number.POSITIVE_INFINITY,
    inFlight: 2,
    order: 'none',
    batchBy: 'mixed',
    // A pull fetches years of a user, page by page, each with its own time-out.
    sendTimeout: 3_600_000,
  } as const;

  readonly #folder: string;
  readonly #service: ServiceClient;
  readonly #context: SinkContext;
  readonly #events: boolean;
  readonly #resources: Resources;
  /** Announcements that no operation reads, by event type. */
  readonly #skipped = new Tally();
  /** Running pulls, by key: a repetition waits for the first. */
  readonly #running = new Map<string, Promise<SendResult>>();

  constructor({ path, events, resources, ...service }: FollowUpOptions, context: SinkContext) {
    this.#folder = resolve(path);
    this.#events = events;
    this.#resources = resourcesWith(resources);
    this.#context = context;
    // The dispatcher retries, so that `status` shows a service in trouble.
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

  async #follow(event: JournalEvent, signal: AbortSignal): Promise<SendResult> {
    const found = readAnnouncement(event, this.#resources);
    if (found === null) return DELIVERED;
    if (typeof found === 'string') return { status: 'refused', code: 'not_a_completion', reason: found };
    if (found.kind === 'unreadable') return this.#skip(found.what);
    const key = keyOf(found);
    return getOrMake(this.#running, key, () =>
      this.#pull(found, join(this.#folder, key), event, signal).finally(() => this.#running.delete(key)),
    );
  }

  #skip(type: string): SendResult {
    const { name, log } = this.#context;
    if (!this.#skipped.has(type))
      log.warn({ sink: name, type }, 'the service has no operation that reads this; it is only counted');
    this.#skipped.add(type);
    return DELIVERED;
  }

  async #pull(
    found: Completion | ChangedJob,
    folder: string,
    owner: Owner,
    signal: AbortSignal,
  ): Promise<SendResult> {
    const { name, log } = this.#context;
    let own: WorkFolder | null = null;
    try {
      if (isFinishedTask(folder)) return DELIVERED;
      // A replay, or another receiver with the same tables, may pull the same: the second one finds it done.
      own = await WorkFolder.take(folder);
      if (isFinishedTask(folder)) return DELIVERED;
      const done =
        found.kind === 'range'
          ? await this.#fetchRange(found, folder, owner, signal)
          : await this.#fetchJob(found, folder, owner, signal);
      log.info({ sink: name, folder, ...done }, 'follow-up pull done');
      return DELIVERED;
    } catch (error) {
      return failureOf(error, found.kind);
    } finally {
      own?.release();
    }
  }

  async #fetchRange(
    completion: Completion,
    folder: string,
    { team, clientUser }: Owner,
    signal: AbortSignal,
  ): Promise<object> {
    const owner = { team, user: completion.user, clientUser };
    const _loaded_at = new Date(this.#context.clock.now()).toISOString();
    let events = 0;
    const onElements = async (pulled: readonly Buffer[]): Promise<void> => {
      await this.#journal(completion.resource.name, pulled, owner);
      events += pulled.length;
    };
    const extras = { given: { ...idsOf(owner), _loaded_at }, ...(this.#events ? { onElements } : {}) };
    const { rows, rejects } = await fetchTask(this.#service, completion, folder, signal, extras);
    return { ...rows, rejects, events };
  }

  async #fetchJob(
    { job, user }: ChangedJob,
    folder: string,
    { team, clientUser }: Owner,
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
    const pull = { query: NO_NAMES, output: folder, now: this.#context.clock.now(), signal };
    const summary = await pullReference(this.#service, resource, pull);
    await writeState(folder, DONE, summary);
    return { ...summary.rows, rejects: summary.rejects };
  }

  async #journal(resource: string, items: readonly Buffer[], owner: Owner): Promise<void> {
    const { inlet, clock } = this.#context;
    if (inlet === undefined) throw new Error('there is no journal to put the events into');
    const fields = inlet.fields();
    const now = clock.now();
    await inlet.take(
      SOURCE,
      items.map((item) => toEvent(resource, item, owner, fields, now)),
    );
  }
}

/** Columns that the event fills, not the service. */
function idsOf({ team, user, clientUser }: Owner): Readonly<Record<string, string>> {
  const ids = { team_id: team, user_id: user, client_user_id: clientUser };
  return Object.fromEntries(Object.entries(ids).filter((pair): pair is [string, string] => pair[1] !== null));
}

/**
 * The event of one item, or of one group of samples: its exact bytes in the service's envelope, of the type of the events that the
 * service sends by itself. The id is a hash of the content: the same item, pulled again, is the same event, and a changed one is
 * another.
 * @param now milliseconds since the epoch
 */
function toEvent(
  resource: string,
  item: Buffer,
  { team, user, clientUser }: Owner,
  fields: ReturnType<Inlet['fields']>,
  now: number,
): IncomingMessage {
  const json = JSON.stringify;
  const before = `{${json(fields.type)}:${json(`daily.data.${resource}.created`)},"data":`;
  const after = [
    [fields.team, team],
    [fields.user, user],
    [fields.clientUser, clientUser],
  ].map(([name, value]) => `,${json(name)}:${json(value)}`);
  const id = hash('sha256', Buffer.concat([Buffer.from(json([team, user])), item]), 'hex').slice(0, 32);
  return {
    body: Buffer.concat([Buffer.from(before), item, Buffer.from(`${after.join('')}}`)]),
    encoding: null,
    properties: { 'idempotency-key': `${resource}_${id}` },
    receivedAt: now,
  };
}

function failureOf(error: unknown, kind: (Completion | ChangedJob)['kind']): SendResult {
  const reason = messageOf(error);
  if (error instanceof MillraceError)
    // The journal may be full for a while.
    return error.retryable
      ? { status: 'retry', reason }
      : { status: 'refused', code: 'not_a_completion', reason };
  if (!(error instanceof ServiceError)) return { status: 'retry', reason };
  const { status, retryAfterMs } = error;
  // A refused key, or a service that is down, concerns every pull. Parsing alone can be closed to a team (403).
  const isSink =
    status === 401 || (status === 403 && kind !== 'parsing_job') || status === 429 || status === null;
  if (!isSink && !error.retryable) return { status: 'refused', code: 'service_refused', reason };
  return {
    status: 'retry',
    reason,
    sink: isSink,
    ...(retryAfterMs === null ? {} : { delayMs: retryAfterMs }),
  };
}
