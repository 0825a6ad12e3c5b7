import { messageOf } from './errors.ts';
import type { Event } from './event.ts';
import { canonicalId, namedIds } from './named-ids.ts';
import type { LogHead } from './receipt.ts';
import type { RecordOpener } from './sealed-record.ts';

/** Whose data is to go. */
export interface Subject {
  /** Id of the request, and of the receipt: random, and says nothing of whose it is. */
  readonly request: string;
  /** What `id` is: the service's id of the user, or the team's own. */
  readonly by: 'user' | 'client_user';
  readonly id: string;
  /** Only what is of this team; null for every team. What names no team goes either way. */
  readonly team: string | null;
}

/** What a piece of data says of whose it is. */
export interface Ownership {
  readonly team: string | null;
  readonly user: string | null;
  readonly clientUser: string | null;
}

/** One thing that an erasure changed; a line of the receipt. */
export interface ErasedItem {
  /** Name of the store. */
  readonly store: string;
  /** A file, relative to the store and without ids of users, or a table. */
  readonly item: string;
  /** Records taken out, by request. */
  readonly removed: Readonly<Record<string, number>>;
  /** Lower-case hex SHA-256 of the file as it lay there; null for what is no file. */
  readonly sha256_before: string | null;
  /** Null also for a file that is removed. */
  readonly sha256_after: string | null;
  /** Entries of the log of receipts that were taken out, base64, by request; absent where there are none. */
  readonly entries?: Readonly<Record<string, readonly string[]>>;
}

/**
 * What an erasure could not reach; the requests it concerns stay, and the next run tries again. What concerns none could not
 * be searched: it stands on every receipt of the run.
 */
export interface LeftItem {
  readonly store: string;
  readonly item: string;
  readonly requests: readonly string[];
  readonly reason: string;
}

/** An event that a store has taken out, or is about to. */
export interface TakenOut extends Pick<Event, 'source' | 'id' | 'user' | 'type'> {
  /** SHA-256, a character for each byte. */
  readonly bodyHash: string;
}

/** What a store is handed for one run. */
export interface ErasureRun {
  readonly subjects: readonly Subject[];
  readonly signal: AbortSignal;
  /** What earlier, interrupted runs of these requests have recorded. */
  readonly recorded: readonly ErasedItem[];
  /** What was changed, or is about to be: durable once it resolves. To be told before the change can be seen. */
  record(item: ErasedItem): Promise<void>;
  leave(item: LeftItem): void;
  /**
   * Has the journal forget what stands there for the bodies of these events, which may be gone from it: nobody could tell there that they were
   * the subjects'. To be told before they go from here.
   */
  forget?(events: readonly TakenOut[]): Promise<void>;
  /** Whether there is a log of receipts: when keys are destroyed, nobody can say any more which of its entries their records had. */
  readonly hasLog?: boolean;
  /** Shows an opener every sealed record of the archive that the store's keys are of; absent where nobody knows which archive that is. */
  readonly showSealed?: (opener: RecordOpener) => Promise<void>;
  /** So many files of this store are to be searched next; left out where nobody is told. */
  expected?(files: number): void;
  /** A file has been searched. */
  searched(bytes: number): void;
  /** Named after what has just become true; tests kill the process in it. */
  onStep(step: string): void;
}

/** How far a run is. Stores are listed one after the other, so `total` grows. */
export interface ErasureProgress {
  /** The store it is at, from 1. */
  readonly store: number;
  readonly stores: number;
  /** Files searched, and files that are known of so far. */
  readonly files: number;
  readonly total: number;
  readonly bytes: number;
}

/**
 * A place that keeps data of users: the journal, a folder of files, the keys of sealed records.
 *
 * `erase` removes every byte of the subjects, or says by `leave` what it could not reach. It may be ended anywhere, and is
 * then called again for the same subjects until it has come to its end.
 */
export interface ErasableStore {
  /** For receipts and logs; no id of a user in it. */
  readonly name: string;
  erase(run: ErasureRun): Promise<void>;
}

/** What an event that names no user is looked through for. */
export type Said = Ownership & Pick<Event, 'id' | 'headers' | 'body'>;

/** Says whose a piece of data is, for many subjects at once: a look-up, whatever their number. */
export class Owners {
  readonly #byId: ReadonlyMap<string, readonly Subject[]>;

  constructor(subjects: readonly Subject[]) {
    this.#byId = Map.groupBy(subjects, ({ id }) => canonicalId(id));
  }

  /** The requests a piece of data falls under, by its envelope; none for most. */
  of({ team, user, clientUser }: Ownership): readonly string[] {
    const found = [...this.#owning(user, 'user'), ...this.#owning(clientUser, 'client_user')];
    return found.length === 0 ? NONE : found.filter(inTeam(team)).map(({ request }) => request);
  }

  /** The requests whose subjects these bytes name: what says of no user that it is theirs is of whom it names. */
  named(bytes: Buffer, team: string | null): readonly string[] {
    const found = new Set<string>();
    for (const id of namedIds(bytes))
      for (const subject of this.#byId.get(id) ?? NOBODY)
        if (inTeam(team)(subject)) found.add(subject.request);
    return [...found];
  }

  /**
   * The requests an event falls under.
   * @param malformed what stands as its user is no id, and so no other user's
   */
  ofEvent(event: Said, malformed = false): readonly string[] {
    const requests = this.of(event);
    if (requests.length > 0 || (event.user !== null && !malformed)) return requests;
    return this.named(wordsOf(event), event.team);
  }

  #owning(id: string | null, by: Subject['by']): readonly Subject[] {
    const subjects = id === null ? undefined : this.#byId.get(canonicalId(id));
    return subjects?.filter((subject) => subject.by === by) ?? NOBODY;
  }
}

const NONE: readonly string[] = [];
const NOBODY: readonly Subject[] = [];

/** What names no team is of any. */
function inTeam(team: string | null): (subject: Subject) => boolean {
  return (subject) =>
    subject.team === null || team === null || canonicalId(subject.team) === canonicalId(team);
}

/** All that an event says beside its envelope, which repeats what its body says. */
export function wordsOf({ id, headers, body }: Omit<Said, keyof Ownership>): Buffer {
  return Buffer.concat([Buffer.from(JSON.stringify([id, Object.values(headers)])), body]);
}

/** Stands in an unfinished plan where a user was who has been erased. */
export const ERASED_USER = '00000000-0000-0000-0000-000000000000';

/** A request as `--list` shows it. */
export interface ErasureRequest extends Subject {
  /** ISO 8601, as are the others. */
  readonly requested_at: string;
  readonly due_at: string;
  /** Null until the run has begun; from then on it cannot be cancelled. */
  readonly begun_at: string | null;
}

/** A user whose data is gone and whose events are dropped, under a keyed hash. */
export interface ErasedUser {
  readonly hash: string;
  readonly by: Subject['by'];
  /** Whether the events of one team only are dropped. */
  readonly scoped: boolean;
  readonly at: string;
}

/** Proof of an erasure, without the id or any data. */
export interface ErasureReceipt {
  readonly receipt: string;
  /** Keyed hash of the id: the same for the same user in this installation, and of no use without its key. */
  readonly subject_hash: string;
  readonly by: Subject['by'];
  readonly requested_at: string;
  readonly due_at: string;
  readonly begun_at: string;
  readonly finished_at: string;
  readonly records_removed: number;
  readonly stores: readonly string[];
  /** What was not searched for a user: databases, Parquet, what lies behind links, tables whose rows do not say whose they are. */
  readonly not_searched: readonly string[];
  /** Sinks that have what they were sent where no erasure looks; absent when there are none. */
  readonly not_reached?: readonly string[];
  readonly items: readonly {
    readonly store: string;
    readonly item: string;
    readonly removed: number;
    readonly sha256_before: string | null;
    readonly sha256_after: string | null;
    /** Entries of the log of receipts that were taken out, base64: without their salts, which are gone, they say nothing. */
    readonly entries?: readonly string[];
  }[];
  /** Where the log of receipts ended then; absent without one. */
  readonly log?: LogHead;
  /** As `signature.ts` says them, over the receipt without white space. */
  readonly signed_by: string;
  readonly signature: string;
}

export interface ErasureResult {
  readonly receipts: readonly ErasureReceipt[];
  /** Not empty when something was out of reach; its requests are still waiting. */
  readonly left: readonly LeftItem[];
  readonly files_searched: number;
  readonly bytes_searched: number;
}

export type CancelResult =
  /** It had not begun: all is as it was. */
  | { readonly status: 'cancelled'; readonly request: string }
  /** The data is gone; new events of the user are taken again. */
  | { readonly status: 'lifted' }
  | { readonly status: 'unknown' };

/** What an operator can ask for, the same whether a receiver is running (through its admin API) or not. */
export interface Erasures {
  /** Asks for an erasure; the same user asked for twice is one request. */
  request(subject: Omit<Subject, 'request'>, now: boolean): Promise<ErasureRequest>;
  /** @throws MillraceError erasure_begun when its run has begun and not ended */
  cancel(subject: Omit<Subject, 'request'>): Promise<CancelResult>;
  list(): Promise<{ readonly waiting: readonly ErasureRequest[]; readonly erased: readonly ErasedUser[] }>;
  /** Performs what is due. */
  run(): Promise<ErasureResult>;
  /** How far the run is that is running; null when none is. Left out where who runs it is told. */
  progress?(): Promise<ErasureProgress | null>;
}

/** An error of one item, as what was left. */
export function leftBy(
  store: string,
  item: string,
  subjects: readonly { readonly request: string }[],
  error: unknown,
): LeftItem {
  return { store, item, requests: subjects.map(({ request }) => request), reason: messageOf(error) };
}
