import { hash } from 'node:crypto';
import type { CompactionLine } from '../core/archive-manifest.ts';
import { messageOf } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { StorageError, WHAT_TO_DO } from '../core/storage.ts';
import { lineOf, type Candidate } from './compact-plan.ts';
import { AT_ONCE, type CompactPlace, type Remark } from './compact-place.ts';
import { mapAtMost } from '../lib/map-at-most.ts';
import { fileChunks } from './file-lines.ts';

const LINE_FEED = 10;
const DIFFERS = 'it is not as the manifest says; see `millrace archive verify`';
const CHANGED = 'it was changed meanwhile; the next run joins it';

export type Joined =
  | { readonly line: Omit<CompactionLine, 'previous'>; readonly left: readonly Remark[] }
  /** Files that cannot be part of it; nothing has happened. At least one. */
  | { readonly bad: readonly Remark[] };

export interface JoinerOptions {
  readonly signal: AbortSignal;
  readonly onStep: (step: 'read' | 'put' | 'listed' | 'removed') => void;
}

/** Makes one file of several: their bytes one after another, which is a file of their kind. */
export class Joiner {
  readonly #place: CompactPlace;
  readonly #options: JoinerOptions;

  constructor(place: CompactPlace, options: JoinerOptions) {
    this.#place = place;
    this.#options = options;
  }

  /** @throws StorageError, MillraceError archive_in_use; the next run goes on from wherever that was */
  async join(group: readonly Candidate[]): Promise<Joined> {
    const { onStep, signal } = this.#options;
    const bytes = Buffer.allocUnsafeSlow(group.reduce((sum, one) => sum + one.bytes, 0));
    let end = 0;
    const places = group.map(({ bytes: size }) => bytes.subarray(end, (end += size)));
    const read = await mapAtMost(AT_ONCE, group, (one, nth) => this.#read(one, places[nth] ?? bytes));
    const bad = read.flatMap((one) => ('reason' in one ? [one] : []));
    const versions = new Map(read.flatMap((one) => ('version' in one ? [[one.file, one.version]] : [])));
    if (bad.length > 0) return { bad };
    onStep('read');
    const line = lineOf(group, { bytes: bytes.length, sha256: hash('sha256', bytes, 'hex') });
    const changed = await this.#changed(versions);
    if (changed.length > 0) return { bad: changed };
    await this.#place.check();
    signal.throwIfAborted();
    const version = await this.#place.put(line.file, bytes, group[0]?.file ?? '');
    onStep('put');
    // An erasure may have been in one of them since it was read, and found nothing in a file that was not there yet.
    const since = await this.#changed(new Map([...versions, [line.file, version]]));
    try {
      await this.#place.check();
    } catch (error) {
      await this.#withdraw(line.file, bytes, group);
      throw error;
    }
    if (since.length > 0) {
      await this.#withdraw(line.file, bytes, group);
      return {
        bad: since.map(({ file, reason }) => ({
          file: file === line.file ? (group[0]?.file ?? '') : file,
          reason,
        })),
      };
    }
    await this.#place.list(line);
    onStep('listed');
    return { line, left: await this.#removeOld(line, versions) };
  }

  /** What was put may hold what is erased by now. Another that has taken over can have put and listed the same. */
  async #withdraw(file: string, made: Buffer, [like]: readonly Candidate[]): Promise<void> {
    if (await this.#place.isListed(file)) return;
    await this.#place.remove([file], { forGood: true });
    // Listed in between: its old files may be gone. Who lists it from now on sees that it is not there, and leaves them.
    if (await this.#place.isListed(file)) await this.#place.put(file, made, like?.file ?? '');
  }

  /** One version of a file, whole, sound, and as the manifest has it. */
  async #read(
    { file, bytes, sha256, records }: Candidate,
    into: Buffer,
  ): Promise<Remark | { readonly file: string; readonly version: string }> {
    const { store } = this.#place;
    const { signal } = this.#options;
    const there = await store.head(file, signal);
    if (there?.bytes !== bytes) return { file, reason: DIFFERS };
    let at = 0;
    try {
      for await (const chunk of store.get(file, { version: there.version, signal })) {
        chunk.copy(into, at);
        at += chunk.length;
      }
    } catch (error) {
      if (error instanceof StorageError && (error.fault === 'changed' || error.fault === 'missing'))
        return { file, reason: CHANGED };
      if (error instanceof StorageError && error.fault === 'archived')
        return { file, reason: `${messageOf(error)}: ${WHAT_TO_DO.archived}` };
      // Of a disk that fails in one place; a store that cannot be asked gives no other file either.
      if (isStoreUrl(store.url) || signal.aborted) throw error;
      return { file, reason: `cannot be read: ${messageOf(error)}` };
    }
    if (at !== bytes || hash('sha256', into, 'hex') !== sha256) return { file, reason: DIFFERS };
    const reason = await unsound(file, into, records);
    return reason === null ? { file, version: there.version } : { file, reason };
  }

  async #changed(versions: ReadonlyMap<string, string>): Promise<Remark[]> {
    const { store } = this.#place;
    const changed = await mapAtMost(AT_ONCE, [...versions], async ([file, version]) =>
      (await store.head(file))?.version === version ? [] : [{ file, reason: CHANGED }],
    );
    return changed.flat();
  }

  /** @returns what could not be removed, which counts no more all the same */
  async #removeOld(
    { file: made, bytes }: Pick<CompactionLine, 'file' | 'bytes'>,
    versions: ReadonlyMap<string, string>,
  ): Promise<readonly Remark[]> {
    // Who stood still for long may have had it taken away.
    if ((await this.#place.store.head(made)) === null)
      return [
        {
          file: made,
          reason: `was removed meanwhile; its ${bytes} bytes are still in the files it was made of`,
        },
      ];
    return this.#place.remove([...versions.keys()], {
      versions,
      onRemoved: () => this.#options.onStep('removed'),
    });
  }
}

/** Bytes behind it must begin a line of their own, and be read. */
async function unsound(file: string, bytes: Buffer, records: number): Promise<string | null> {
  const chunks = async function* (): AsyncGenerator<Buffer> {
    yield await Promise.resolve(bytes);
  };
  let lines = 0;
  let last = LINE_FEED;
  try {
    for await (const chunk of fileChunks({ chunks }, file)) {
      for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) lines += 1;
      last = chunk.at(-1) ?? last;
    }
  } catch (error) {
    return `cannot be read to its end: ${messageOf(error)}`;
  }
  if (last !== LINE_FEED) return 'its last line has no end';
  return lines === records ? null : `${lines} lines instead of ${records}`;
}
