import { messageOf } from '../core/errors.ts';
import type { WitnessStatus } from '../core/operations.ts';
import type { SinkLog } from '../core/sink.ts';
import { cosignaturesIn, parseCosigner, type NoteVerifier } from './note.ts';

/** A signed note, and the entries it is of. */
export interface Checkpoint {
  readonly note: string;
  readonly size: number;
}

/** Proves that a log of so many entries goes on from one of fewer: hashes, base64. */
export type ProveConsistency = (old: number, size: number) => Promise<readonly string[]>;

/** Milliseconds that a witness has for an answer, and is left alone after one that was none. */
const PATIENCE = 5000;
const PAUSE = 1000;
/** Of an answer. */
const LONGEST = 16_384;

/** A witness as the config names it: its address and its key, with a space between. @throws RangeError */
export function parseWitness(text: string): { readonly url: URL; readonly key: NoteVerifier } {
  const [address = '', key = '', ...rest] = text.trim().split(/\s+/);
  if (rest.length > 0 || !/^https?:\/\//.test(address) || !URL.canParse(address))
    throw new RangeError('must be the address of a witness and its key, with a space between');
  return {
    url: new URL('add-checkpoint', address.endsWith('/') ? address : `${address}/`),
    key: parseCosigner(key),
  };
}

/** A witness says that this is not the log it has signed. */
class Refusal extends Error {}

/** One witness (C2SP tlog-witness): it signs only what goes on from what it signed before. */
class Witness {
  readonly key: NoteVerifier;
  readonly #url: URL;
  /** Entries it has signed, as its signature has proven here. */
  size = 0;
  /** Entries that it says it has signed. */
  #known = 0;
  trouble: string | null = null;
  refuses = false;
  /** Monotonic milliseconds before which it is not asked again. */
  pause = 0;

  constructor(text: string) {
    ({ url: this.#url, key: this.key } = parseWitness(text));
  }

  /** @returns its signature line @throws Error that says why there are none */
  async cosign({ note, size }: Checkpoint, prove: ProveConsistency, signal: AbortSignal): Promise<string> {
    for (let tries = 1; ; tries += 1) {
      const hashes = await prove(this.#known, size);
      const body = [`old ${this.#known}`, ...hashes, '', note].join('\n');
      const answer = await fetch(this.#url, { method: 'POST', body, signal, redirect: 'error' });
      const said = await textOf(answer);
      if (answer.status === 200) {
        const line = this.signatureIn(note, said);
        if (line === null) throw new Error(`its answer has no signature of ${this.key.name}`);
        this.size = size;
        this.#known = size;
        return line;
      }
      const known = answer.status === 409 && /^\d{1,15}\n?$/.test(said) ? Number(said) : null;
      if (known !== null && known > size)
        throw new Refusal(
          `it has signed ${known} entries, and the log has ${size}: the log is an older copy`,
        );
      // The proof was none, or with as many entries the root was another.
      if (answer.status === 422 || (known !== null && known === this.#known))
        throw new Refusal(`it answered ${answer.status}: this is not the log it has signed`);
      if (known === null || tries > 1) throw new Error(`it answered ${answer.status}`);
      this.#known = known;
    }
  }

  /** Its line among these, if it has signed this note: other lines are not held against it, they could be another text. */
  signatureIn(note: string, lines: string): string | null {
    const signatures = lines.split('\n').filter((line) => line.startsWith('— '));
    return cosignaturesIn(`${note}${signatures.join('\n')}\n`, this.key)[0]?.line ?? null;
  }
}

/** @throws RangeError when it is longer than any answer is */
async function textOf(answer: Response): Promise<string> {
  let text = '';
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk).toString('utf8');
    if (text.length > LONGEST) throw new RangeError('its answer is too long');
  }
  return text;
}

export interface WitnessesOptions {
  /** As the config names them. */
  readonly witnesses: readonly string[];
  readonly prove: ProveConsistency;
  /** The note that was kept last; null when there is none. */
  readonly kept?: string | null;
  /** Takes a checkpoint with all signatures that are there of it. */
  readonly keep: (note: string) => Promise<void>;
  readonly log: SinkLog;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/**
 * Has others sign the checkpoints of a log: whoever has its key cannot show each reader another log then, nor an older one.
 *
 * Rounds, one at a time: all witnesses are asked for one checkpoint at once, and what one has signed stays with it. Nothing waits for a round.
 */
export class Witnesses {
  readonly #options: WitnessesOptions;
  readonly #witnesses: readonly Witness[];
  readonly #stop = new AbortController();
  #round: Promise<void> | null = null;
  /** The note that is signed now, and the lines of those that have. */
  #note: string | null = null;
  #lines = new Map<Witness, string>();
  /** Whose lines are in what is kept. */
  #keptBy: ReadonlySet<Witness> = new Set();
  #last = '';

  /** @throws RangeError for a text that names no witness */
  constructor(options: WitnessesOptions) {
    this.#options = options;
    this.#witnesses = options.witnesses.map((text) => new Witness(text));
  }

  status(): readonly WitnessStatus[] {
    return this.#witnesses.map(({ key, size, trouble, refuses }) => {
      return { name: key.name, entries: size, trouble, refuses };
    });
  }

  /** Whether one of them says that this is not the log it has signed, until it signs it again. */
  get isRefused(): boolean {
    return this.#witnesses.some(({ refuses }) => refuses);
  }

  /** Resolves when nobody is asked any more: a few seconds at most. */
  async answered(): Promise<void> {
    await this.#round;
  }

  /** To be called again and again with the newest checkpoint: those that have not signed it are asked. */
  ask(checkpoint: Checkpoint): void {
    const now = this.#options.now();
    const due = this.#witnesses.filter(({ size, pause }) => size !== checkpoint.size && pause <= now);
    if (due.length === 0 || this.#round !== null || this.#stop.signal.aborted) return;
    this.#round = this.#ask(checkpoint, due).finally(() => {
      this.#round = null;
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#round;
  }

  async #ask(checkpoint: Checkpoint, due: readonly Witness[]): Promise<void> {
    const { prove } = this.#options;
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(PATIENCE)]);
    if (this.#note !== checkpoint.note) this.#begin(checkpoint.note);
    const asked = new Set(due);
    const answers = due.map(async (witness) => {
      try {
        this.#lines.set(witness, await witness.cosign(checkpoint, prove, signal));
        this.#heard(witness, null);
      } catch (error) {
        this.#heard(witness, error);
      }
      asked.delete(witness);
      await this.#keep([...asked]);
    });
    await Promise.all(answers);
  }

  #begin(note: string): void {
    const { kept } = this.#options;
    this.#note = note;
    this.#lines = new Map();
    if (kept?.startsWith(note) !== true) return;
    for (const witness of this.#witnesses) {
      const line = witness.signatureIn(note, kept.slice(note.length));
      if (line !== null) this.#lines.set(witness, line);
    }
  }

  /**
   * Nobody's answer is waited for, but of those that have signed what is kept and answer as a rule: without them readers who ask for
   * several witnesses would find fewer.
   * @param asked those that have not answered
   */
  async #keep(asked: readonly Witness[]): Promise<void> {
    const { keep, log } = this.#options;
    const mayCome = asked.some((witness) => this.#keptBy.has(witness) && witness.trouble === null);
    const by = new Set(this.#lines.keys());
    const note = `${this.#note ?? ''}${[...this.#lines.values()].map((line) => `${line}\n`).join('')}`;
    if (mayCome || by.size === 0 || note === this.#last) return;
    this.#keptBy = by;
    this.#last = note;
    await keep(note).catch((error: unknown) =>
      log.warn({ err: error }, 'the signatures of witnesses could not be kept'),
    );
  }

  #heard(witness: Witness, error: unknown): void {
    const { log, now } = this.#options;
    if (this.#stop.signal.aborted) return;
    const { name } = witness.key;
    const had = witness.trouble;
    const isRefusal = error instanceof Refusal;
    // One that cannot be reached has not taken back what it said.
    witness.refuses = isRefusal || (witness.refuses && error !== null);
    witness.trouble = error === null ? null : messageOf(error);
    witness.pause = error === null ? 0 : now() + PAUSE;
    if (witness.trouble !== null && witness.trouble !== had)
      log.error(
        { witness: name, reason: witness.trouble },
        isRefusal
          ? 'a witness has signed another log of receipts than this: it was put back, or made again. Deliveries are answered without receipts'
          : 'a witness did not sign the log of receipts',
      );
    if (witness.trouble === null && had !== null)
      log.info({ witness: name }, 'the witness signs the log of receipts again');
  }
}
