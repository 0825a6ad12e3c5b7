import { messageOf } from './errors.ts';
import type { Envelope, Event } from './event.ts';
import { canonicalId, namedIds } from './named-ids.ts';
import type { LogHead } from './receipt.ts';
import type { RecordOpener } from './sealed-record.ts';

/** A user, or client user, whose data is erased. */
export interface Subject {
  /** Id of the request and of the receipt: random. */
  readonly request: string;
  /** Whether `id` is the service's id of the user, or the team's own. */
  readonly by: 'user' | 'client_user';
  readonly id: string;
  /** Only data of this team; null for every team. Data without a team id is erased in both cases. */
  readonly team: string | null;
}

/** The ids in a piece of data that say whose it is. */
export type Ownership = Omit<Envelope, 'type'>;

/** One change of an erasure: a line of the receipt. */
export interface ErasedItem {
  /** Name of the store. */
  readonly store: string;
  /** A file, relative to the store and without ids of users, or a table. */
  readonly item: string;
  /** Records removed, by request. */
  readonly removed: Readonly<Record<string, number>>;
  /** Lower-case hex SHA-256 of the file; null for an item that is no file. */
  readonly sha256_before: string | null;
  /** Null also for a removed file. */
  readonly sha256_after: string | null;
  /** Removed entries of the log of receipts, base64, by request. */
  readonly entries?: Readonly<Record<string, readonly string[]>>;
}

/**
 * An item that an erasure could not reach. Its requests stay open, and the next run tries again. An item without requests could
 * not be searched: every receipt of the run names it.
 */
export interface LeftItem {
  readonly store: string;
  readonly item: string;
  readonly requests: readonly string[];
  readonly reason: string;
}

/** An event that a store removes. */
export interface RemovedEvent extends Pick<Event, 'source' | 'id' | 'user' | 'type'> {
  /** SHA-256, one character a byte. */
  readonly bodyHash: string;
}

/** One run of erasures, as a store sees it. */
export interface ErasureRun {
  readonly subjects: readonly Subject[];
  readonly signal: AbortSignal;
  /** Items of earlier, interrupted runs of these requests. */
  readonly recorded: readonly ErasedItem[];
  /** Records a change; durable once it resolves. To be called before the change is visible. */
  record(item: ErasedItem): Promise<void>;
  leave(item: LeftItem): void;
  /** Makes the journal forget the hashes of these events, which may be gone from it. To be called before they are removed. */
  forget?(events: readonly RemovedEvent[]): Promise<void>;
  /** Whether there is a log of receipts: the entries of sealed records must be read before their keys are destroyed. */
  readonly hasLog?: boolean;
  /** Shows an opener every sealed record of the archive that the store has the keys of; absent where that archive is unknown. */
  readonly showSealed?: (opener: RecordOpener) => Promise<void>;
  /** Announces that so many files are searched next. */
  expected?(files: number): void;
  /** One file has been searched. */
  searched(bytes: number): void;
  /** For tests, which kill the process in it. @param step what has just been done */
  onStep(step: string): void;
}

/** Progress of a run. `total` grows, as stores are listed one after the other. */
export interface ErasureProgress {
  /** Number of the current store, from 1. */
  readonly store: number;
  readonly stores: number;
  /** Files searched, and files known so far. */
  readonly files: number;
  readonly total: number;
  readonly bytes: number;
}

/**
 * Keeps data of users: the journal, a folder of files, the keys of sealed records.
 *
 * `erase` removes every byte of the subjects, or names by `leave` what it could not reach. It may be interrupted anywhere, and is
 * then called again for the same subjects until it has ended.
 */
export interface ErasableStore {
  /** For receipts and logs; without ids of users. */
  readonly name: string;
  erase(run: ErasureRun): Promise<void>;
}

/** An event that is searched for ids. */
export type Said = Ownership & Pick<Event, 'id' | 'headers' | 'body'>;

/** Finds the subjects that own a piece of data; equally fast for any number of subjects. */
export class Owners {
  readonly #byId: ReadonlyMap<string, readonly Subject[]>;

  constructor(subjects: readonly Subject[]) {
    this.#byId = Map.groupBy(subjects, ({ id }) => canonicalId(id));
  }

  /** The requests that concern a piece of data, by its envelope. */
  of({ team, user, clientUser }: Ownership): readonly string[] {
    const found = [...this.#owning(user, 'user'), ...this.#owning(clientUser, 'client_user')];
    return found.length === 0 ? NONE : found.filter(inTeam(team)).map(({ request }) => request);
  }

  /** The requests whose subjects these bytes name, for data without a user. */
  named(bytes: Buffer, team: string | null): readonly string[] {
    const found = new Set<string>();
    for (const id of namedIds(bytes))
      for (const subject of this.#byId.get(id) ?? NO_SUBJECTS)
        if (inTeam(team)(subject)) found.add(subject.request);
    return [...found];
  }

  /**
   * The requests that concern an event.
   * @param malformed its user field is not an id
   */
  ofEvent(event: Said, malformed = false): readonly string[] {
    const requests = this.of(event);
    if (requests.length > 0 || (event.user !== null && !malformed)) return requests;
    return this.named(wordsOf(event), event.team);
  }

  #owning(id: string | null, by: Subject['by']): readonly Subject[] {
    const subjects = id === null ? undefined : this.#byId.get(canonicalId(id));
    return subjects?.filter((subject) => subject.by === by) ?? NO_SUBJECTS;
  }
}

const NONE: readonly string[] = [];
const NO_SUBJECTS: readonly Subject[] = [];

/** A record without a team id matches every team. */
function inTeam(team: string | null): (subject: Subject) => boolean {
  return (subject) =>
    subject.team === null || team === null || canonicalId(subject.team) === canonicalId(team);
}

/** The parts of an event in which ids are searched. */
export function wordsOf({ id, headers, body }: Omit<Said, keyof Ownership>): Buffer {
  return Buffer.concat([Buffer.from(JSON.stringify([id, Object.values(headers)])), body]);
}

/** Replaces an erased user in an unfinished plan. */
export const ERASED_USER = '00000000-0000-0000-0000-000000000000';

/** As `--list` shows it. */
export interface ErasureRequest extends Subject {
  /** ISO 8601, as are the others. */
  readonly requested_at: string;
  readonly due_at: string;
  /** Null until the run has begun; after that it cannot be cancelled. */
  readonly begun_at: string | null;
}

/** A user whose data is erased and whose events are dropped, as a keyed hash. */
export interface ErasedUser {
  readonly hash: string;
  readonly by: Subject['by'];
  /** Whether only the events of one team are dropped. */
  readonly scoped: boolean;
  readonly at: string;
}

/** Proof of an erasure, without the id or any data. */
export interface ErasureReceipt {
  readonly receipt: string;
  /** Keyed hash of the id: the same for the same user in this installation. */
  readonly subject_hash: string;
  readonly by: Subject['by'];
  readonly requested_at: string;
  readonly due_at: string;
  readonly begun_at: string;
  readonly finished_at: string;
  readonly records_removed: number;
  readonly stores: readonly string[];
  /** Not searched: databases, Parquet, targets of links, tables whose rows do not say whose they are. */
  readonly not_searched: readonly string[];
  /** Sinks whose data no erasure can reach; absent when there are none. */
  readonly not_reached?: readonly string[];
  readonly items: readonly (Omit<ErasedItem, 'removed' | 'entries'> & {
    readonly removed: number;
    /** Removed entries of the log of receipts, base64; without their salts they reveal nothing. */
    readonly entries?: readonly string[];
  })[];
  /** Head of the log of receipts then; absent without one. */
  readonly log?: LogHead;
  /** As in `signature.ts`, over the receipt without white space. */
  readonly signed_by: string;
  readonly signature: string;
}

export interface ErasureResult {
  readonly receipts: readonly ErasureReceipt[];
  /** Items out of reach; their requests are still waiting. */
  readonly left: readonly LeftItem[];
  readonly files_searched: number;
  readonly bytes_searched: number;
}

export type CancelResult =
  /** It had not begun: nothing has changed. */
  | { readonly status: 'cancelled'; readonly request: string }
  /** The data is erased; new events of the user are accepted again. */
  | { readonly status: 'lifted' }
  | { readonly status: 'unknown' };

/** Erasures for an operator: through the admin API of a running receiver, or in the erasure folder itself. */
export interface Erasures {
  /** Requests an erasure; two requests for the same user are one. */
  request(subject: Omit<Subject, 'request'>, now: boolean): Promise<ErasureRequest>;
  /** @throws MillraceError erasure_begun while its run is in progress */
  cancel(subject: Omit<Subject, 'request'>): Promise<CancelResult>;
  list(): Promise<{ readonly waiting: readonly ErasureRequest[]; readonly erased: readonly ErasedUser[] }>;
  /** Performs the requests that are due. */
  run(): Promise<ErasureResult>;
  /** Progress of the current run; null when none is in progress. */
  progress?(): Promise<ErasureProgress | null>;
}

/** The left item of an error. */
export function leftItemOf(
  store: string,
  item: string,
  subjects: readonly { readonly request: string }[],
  error: unknown,
): LeftItem {
  return { store, item, requests: subjects.map(({ request }) => request), reason: messageOf(error) };
}
