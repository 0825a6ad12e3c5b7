import { messageOf } from './errors.ts';

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
}

/** What an erasure could not reach; the requests it concerns stay, and the next run tries again. */
export interface LeftItem {
  readonly store: string;
  readonly item: string;
  readonly requests: readonly string[];
  readonly reason: string;
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
  /** A file has been searched. */
  searched(bytes: number): void;
  /** Named after what has just become true; tests kill the process in it. */
  onStep(step: string): void;
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

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The form in which ids are compared: a UUID is the same in either case, another id is not. */
export function canonicalId(id: string): string {
  return UUID.test(id) ? id.toLowerCase() : id;
}

/** Says whose a piece of data is, for many subjects at once: a look-up, whatever their number. */
export class Owners {
  readonly #users = new Map<string, Subject[]>();
  readonly #clientUsers = new Map<string, Subject[]>();

  constructor(subjects: readonly Subject[]) {
    for (const subject of subjects) {
      const map = subject.by === 'user' ? this.#users : this.#clientUsers;
      const id = canonicalId(subject.id);
      const known = map.get(id);
      if (known === undefined) map.set(id, [subject]);
      else known.push(subject);
    }
  }

  /** The requests a piece of data falls under; none for most. */
  of({ team, user, clientUser }: Ownership): readonly string[] {
    const found = [
      ...(user === null ? [] : (this.#users.get(canonicalId(user)) ?? [])),
      ...(clientUser === null ? [] : (this.#clientUsers.get(canonicalId(clientUser)) ?? [])),
    ];
    if (found.length === 0) return NONE;
    return found
      .filter((subject) => subject.team === null || team === null || sameId(subject.team, team))
      .map(({ request }) => request);
  }
}

const NONE: readonly string[] = [];

function sameId(one: string, other: string): boolean {
  return canonicalId(one) === canonicalId(other);
}

/**
 * Looks for the ids of subjects in bytes, before anything is parsed, also as JSON writers spell them that escape what is
 * not ASCII, or slashes. `quoted` finds an id only where it is a whole JSON text, and so never the `7` in `17`, and in
 * another case of its letters only a UUID; `bare` finds it anywhere, in any case.
 */
export class IdSearch {
  /** What two chunks must overlap by, so that an id on the seam is found. */
  readonly overlap: number;
  readonly #needles: readonly Needle[];

  constructor(subjects: readonly Subject[], mode: 'quoted' | 'bare' = 'quoted') {
    this.#needles = subjects.flatMap(({ id, request }) => {
      const anyCase = mode === 'bare' || UUID.test(id);
      const texts = mode === 'bare' ? [id, ...spellings(id)] : spellings(id).map((text) => `"${text}"`);
      return texts.map((text): Needle => {
        const bytes = Buffer.from(text);
        return { bytes, folded: anyCase ? fold(bytes) : null, request };
      });
    });
    this.overlap = Math.max(0, ...this.#needles.map(({ bytes }) => bytes.length - 1));
  }

  /** Whether any id stands in these bytes. */
  finds(bytes: Buffer): boolean {
    return this.#standing(bytes).next().done !== true;
  }

  /** The requests whose ids stand in these bytes. */
  requestsIn(bytes: Buffer): readonly string[] {
    return [...new Set(this.#standing(bytes))];
  }

  *#standing(hay: Buffer): Generator<string> {
    let text: string | null = null;
    for (const { bytes, folded, request } of this.#needles) {
      if (folded === null ? hay.includes(bytes) : (text ??= fold(hay)).includes(folded)) yield request;
    }
  }
}

interface Needle {
  readonly bytes: Buffer;
  /** Null for an id whose case counts. */
  readonly folded: string | null;
  readonly request: string;
}

/**
 * An id as it may stand between the quotes of a JSON text: as `JSON.stringify` has it, with what is not ASCII escaped, in
 * either case of the digits, and each of these with slashes escaped.
 */
function spellings(id: string): readonly string[] {
  const plain = JSON.stringify(id).slice(1, -1);
  const forms = [plain, escaped(plain, (digits) => digits), escaped(plain, (digits) => digits.toUpperCase())];
  return [...new Set([...forms, ...forms.map((form) => form.replaceAll('/', String.raw`\/`))])];
}

function escaped(text: string, spell: (digits: string) => string): string {
  return text.replace(/[\u0080-\uffff]/g, (unit) => {
    return `\\u${spell(unit.charCodeAt(0).toString(16).padStart(4, '0'))}`;
  });
}

/** One character a byte. Needle and hay are folded alike, so that it does not matter what becomes of other bytes. */
function fold(bytes: Buffer): string {
  return bytes.toString('latin1').toLowerCase();
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
  /** Files that cannot be searched for a user: databases, Parquet, and tables whose rows do not say whose they are. */
  readonly not_searched: readonly string[];
  readonly items: readonly {
    readonly store: string;
    readonly item: string;
    readonly removed: number;
    readonly sha256_before: string | null;
    readonly sha256_after: string | null;
  }[];
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
