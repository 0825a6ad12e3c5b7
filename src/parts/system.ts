import type { Logger } from 'pino';
import { ActivityBoard } from '../admin/activities.ts';
import { Audit } from '../admin/audit.ts';
import { EventSearch } from '../admin/event-search.ts';
import { Replays } from '../admin/replays.ts';
import { Status } from '../admin/status.ts';
import { newToken, Tokens } from '../admin/tokens.ts';
import { systemClock } from '../core/clock.ts';
import type { MillraceError } from '../core/errors.ts';
import type { Ingest } from '../core/ingest.ts';
import type { EventStore } from '../core/journal.ts';
import type { Operations } from '../core/operations.ts';
import type { NotedHead } from '../core/proof.ts';
import type { Inlet } from '../core/sink.ts';
import type { Tracing } from '../core/tracing.ts';
import { Delivery } from '../deliver/delivery.ts';
import { Dispatcher } from '../deliver/dispatcher.ts';
import { LiveSinks } from '../deliver/live-sinks.ts';
import { ErasedUsers } from '../erase/erased-users.ts';
import type { RunningErasures } from '../erase/running-erasures.ts';
import type { KafkaJournal } from '../journal/kafka/store.ts';
import { ownerFolder } from '../journal/owner.ts';
import { SqliteJournal } from '../journal/sqlite-journal.ts';
import type { Live } from '../lib/live.ts';
import { Serial } from '../lib/serial.ts';
import { Meter } from '../metrics/meter.ts';
import type { Plan } from '../plan.ts';
import { openProof } from '../proof/open.ts';
import { Receipts } from '../receipts/receipts.ts';
import type { Receiver } from '../receive/receiver.ts';
import { SchemaWatch } from '../schema/watch.ts';
import type { Validator } from '../validate/envelope.ts';
import type { EarlierArchives } from './earlier-archives.ts';

export interface AppOptions {
  readonly log: Logger;
  /** Called once when the process must end because the journal can no longer be trusted. */
  readonly onFailure: (error: MillraceError) => void;
  /** Never makes a journal; left out: one that is not there is made. */
  readonly existing?: boolean;
  /** With `journal.type: kafka`: the half of it that runs here; left out: both. */
  readonly role?: Role;
  /** The config file, for commands that the console starts; left out: it starts none. */
  readonly file?: string;
  /** Reads the config again, for the admin API; left out where there is none to read. Rejects when it cannot be used. */
  readonly reload?: () => Promise<void>;
}

export type Role = 'receive' | 'deliver';

/** What the parts start on. */
export function foundation(plan: Live<Plan>, options: AppOptions) {
  const { config } = plan.value;
  const heads = new Map<string, NotedHead>();
  const token = newToken();
  const folder = ownerFolder(config);
  const validate: Validator = (body, known) => plan.value.validate(body, known);
  return {
    ...options,
    plan,
    reloads: new Serial(),
    /** That of the start: what only a restart can change is read from it. */
    config,
    clock: systemClock,
    meter: new Meter({ clock: systemClock, plan }),
    users: ErasedUsers.open(config.erasure.path),
    heads,
    proof: openProof(config, heads),
    /** Where this process says who it is. */
    folder,
    audit: new Audit(folder),
    board: new ActivityBoard(systemClock),
    /** Of this start, for commands and the console. */
    token,
    tokens: new Tokens({ config: config.admin.token, owner: token }, systemClock),
    validate,
  };
}

/** Each part finds here what those before it have left, and leaves what those after it need. */
export type System = ReturnType<typeof foundation> & {
  tracing: Tracing | undefined;
  /** Null where nothing is kept on disk. */
  journal: SqliteJournal | null;
  store: EventStore;
  /** Of a fleet, in the place of a journal of this process's own; null without one. */
  shared: KafkaJournal | null;
  /** Null where no journal is kept that it could remember in. */
  schema: SchemaWatch | null;
  /** Null where none are given. */
  receipts: Receipts | null;
  ingest: Ingest;
  take: Inlet['take'];
  dispatcher: Dispatcher;
  sinks: LiveSinks;
  delivery: Delivery;
  earlier: EarlierArchives;
  erasures: RunningErasures;
  /** Null where nothing comes in. */
  receiver: Receiver | null;
  operations: Operations;
  status: Status;
  /** Null where nothing is kept on disk. */
  search: EventSearch | null;
  /** Null without a console. */
  replays: Replays | null;
  /** Null without an admin listener. */
  adminUrl: string | null;
  url: string;
};
