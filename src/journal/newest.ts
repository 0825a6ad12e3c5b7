import { MillraceError, messageOf } from '../core/errors.ts';

type Listener = (lastSeq: number) => void;

/** The newest event of a journal, and who is told when there is one more. */
export class Newest {
  readonly #listeners = new Set<Listener>();
  readonly #onFailure: (error: MillraceError) => void;
  #seq: number;

  constructor(seq: number, onFailure: (error: MillraceError) => void) {
    this.#seq = seq;
    this.#onFailure = onFailure;
  }

  get seq(): number {
    return this.#seq;
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Never throws: a listener that does is a failure, for what it delivers might stand still and nobody would know. */
  readonly reach = (seq: number): void => {
    if (seq <= this.#seq) return;
    this.#seq = seq;
    let failed: MillraceError | null = null;
    for (const listener of this.#listeners)
      try {
        listener(seq);
      } catch (cause) {
        const detail = `nobody could be told of what came in: ${messageOf(cause)}`;
        failed ??= new MillraceError('journal_failed', detail, { cause });
      }
    if (failed !== null) this.#onFailure(failed);
  };
}
