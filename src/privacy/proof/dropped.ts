import type { DroppedEntries, DroppedNote, OpenProof } from '../../core/proof.ts';
import { ENTRY_BYTES } from '../../core/receipt.ts';
import type { SignedFiles } from './signed-files.ts';

/** Events that a person dropped, as signed JSON lines: an event removed by other means cannot be claimed to be one. */
export class DroppedFile implements DroppedEntries {
  readonly #path: string;
  readonly #files: SignedFiles;

  constructor(path: string, files: SignedFiles) {
    this.#path = path;
    this.#files = files;
  }

  async append(notes: readonly DroppedNote[]): Promise<void> {
    const at = new Date().toISOString();
    await this.#files.append(
      'dropped',
      this.#path,
      notes.map((one) => ({ at, ...one })),
    );
  }

  /** Without lines that were changed, or signed by a key that is not trusted. */
  notes(): readonly DroppedNote[] {
    return this.#files.lines<DroppedNote>('dropped', this.#path).flatMap(({ value, isTrusted }) => {
      if (!isTrusted) return [];
      const { from, sink, archive, state } = value;
      const entries = value.entries.filter((entry) => Buffer.from(entry, 'base64').length === ENTRY_BYTES);
      return [{ from, sink, ...(archive === undefined ? {} : { archive }), state, entries }];
    });
  }
}

/**
 * Notes what is dropped with the key of an installation, which is opened by the first note.
 * @param archiveOf gives the place of a sink's archive: a sink's name may be another's later
 */
export function droppedBy(
  openProof: OpenProof,
  archiveOf: (sink: string) => Promise<string | null> | string | null,
): DroppedEntries['append'] {
  return async (notes) => {
    const placed: DroppedNote[] = [];
    for (const note of notes)
      placed.push(note.sink === null ? note : { ...note, archive: await archiveOf(note.sink) });
    await (await openProof()).dropped.append(placed);
  };
}
