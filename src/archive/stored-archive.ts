import { MillraceError } from '../core/errors.ts';
import {
  type ObjectStore,
  StorageError,
  type StorageFault,
  type StoredObject,
  WHAT_TO_DO,
} from '../core/storage.ts';
import { isMissing } from '../core/objects.ts';
import { FetchAhead } from '../lib/fetch-ahead.ts';
import { byKind, kindOf, ofOne } from './file-kind.ts';
import { parseSegmentKey, type Segment, SEGMENTS } from '../core/archive-segments.ts';
import { linesOf } from './kept-segments.ts';
import { ReplacedFiles } from './replaced-files.ts';
import type { ArchiveListing, ArchivePlace, FileState } from './place.ts';
import { standing } from './standing.ts';

/** Objects fetched before their turn, and bytes held of each: 32 MiB, and 16 ways there and back at a time. */
const AHEAD = { width: 16, most: 2 * 1024 * 1024 };

interface Joined {
  readonly segment: Segment;
  readonly lines: readonly string[];
}

/** An archive in an object store. */
export class StoredArchive implements ArchivePlace {
  readonly root: string;
  readonly #only: string | null;
  readonly #open: () => Promise<ObjectStore>;
  readonly #ahead: FetchAhead;
  readonly #moved = new ReplacedFiles(this, {
    open: (file, offset) => this.#get(file, offset),
    isGone: isMissing,
  });
  /** Lines of the segment that was last found in place of others. */
  #joined: Joined | null = null;
  /** What the last listing has found. */
  #found: ReadonlyMap<string, FileState> = new Map();

  /**
   * @param open the same store each time
   * @param only the only object of it that is meant; null for all
   */
  constructor(root: string, open: () => Promise<ObjectStore>, only: string | null = null) {
    this.root = root;
    this.#open = open;
    this.#only = only;
    this.#ahead = new FetchAhead({ ...AHEAD, open: (file) => this.#read(file) });
  }

  async list(): Promise<ArchiveListing> {
    const found = new Map<string, FileState>();
    for await (const object of this.#objects()) found.set(object.key, stateOf(object));
    this.#found = found;
    const about = { place: this, root: this.root, isFolder: this.#only === null };
    if (this.#only !== null) return { ...about, ...byKind([]), ...ofOne(...found.keys()) };
    const kinds = byKind([...found.keys()]);
    // Listed after the files: what a compaction has removed from these is in a line by then.
    const manifest = await this.segments();
    return { ...about, ...kinds, manifest, ...(await standing(this, { files: kinds.files, manifest })) };
  }

  chunks(file: string): AsyncIterable<Buffer> {
    return this.#ahead.read(file);
  }

  /** As it was when it was listed; of what was not, as it is. */
  async stat(file: string): Promise<FileState | null> {
    const known = this.#found.get(file);
    if (known !== undefined) return known;
    const object = await asking(async () => (await this.#open()).head(file));
    return object === null ? null : stateOf(object);
  }

  moved(file: string): ReturnType<ArchivePlace['moved']> {
    return this.#moved.sliceOf(file);
  }

  expect(files: Iterable<string>): void {
    this.#ahead.expect(files);
  }

  close(): Promise<void> {
    return this.#ahead.close();
  }

  /** The objects that the manifest is made of. */
  async segments(): Promise<string[]> {
    const store = await this.#open();
    const segments = await asking(() => Array.fromAsync(store.list(SEGMENTS), ({ key }) => key));
    return segments.filter((key) => kindOf(key) === 'manifest').toSorted();
  }

  #read(file: string): AsyncIterable<Buffer> {
    const segment = parseSegmentKey(file);
    return segment === null ? this.#moved.read(file) : this.#readSegment(file, segment);
  }

  /** A segment, or its lines in the one that its writer has joined it to since it was listed. */
  async *#readSegment(file: string, segment: Segment): AsyncGenerator<Buffer> {
    let got = 0;
    let gone: unknown;
    try {
      for await (const chunk of this.#get(file, 0)) {
        got += chunk.length;
        yield chunk;
      }
      return;
    } catch (error) {
      if (!isMissing(error)) throw error;
      gone = error;
    }
    const joined = contains(this.#joined?.segment, segment) ? this.#joined : await this.#findJoined(segment);
    if (joined === null) throw gone;
    this.#joined = joined;
    const lines = joined.lines.slice(segment.first - joined.segment.first).slice(0, lengthOf(segment));
    yield Buffer.from(lines.map((line) => `${line}\n`).join('')).subarray(got);
  }

  async #findJoined(wanted: Segment): Promise<Joined | null> {
    for (const key of await this.segments()) {
      const segment = parseSegmentKey(key);
      if (segment === null || !contains(segment, wanted) || lengthOf(segment) === lengthOf(wanted)) continue;
      const bytes = await Array.fromAsync(this.#readSegment(key, segment));
      return { segment, lines: linesOf(Buffer.concat(bytes)) };
    }
    return null;
  }

  async *#get(file: string, offset: number): AsyncGenerator<Buffer> {
    try {
      yield* (await this.#open()).get(file, { offset });
    } catch (error) {
      throw meaning(error);
    }
  }

  async *#objects(): AsyncGenerator<StoredObject> {
    try {
      const store = await this.#open();
      if (this.#only === null) yield* store.list('');
      else {
        const object = await store.head(this.#only);
        if (object !== null) yield object;
      }
    } catch (error) {
      throw meaning(error);
    }
  }
}

function contains(large: Segment | undefined, { writer, first, last }: Segment): boolean {
  return large?.writer === writer && large.first <= first && large.last >= last;
}

function lengthOf({ first, last }: Segment): number {
  return last - first + 1;
}

function stateOf({ bytes, version, modifiedAt }: StoredObject): FileState {
  return { bytes, version, modified: modifiedAt };
}

async function asking<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw meaning(error);
  }
}

/** About one object, and no reason to stop: others can be read. */
const OF_ONE_OBJECT: ReadonlySet<StorageFault> = new Set([
  'missing',
  'changed',
  'archived',
  'immutable',
  'invalid',
]);

/**
 * What an error of a store means to who reads an archive. That the store cannot be asked says nothing of what is in it, so
 * reading ends there; what is wrong with one object is thrown as it is.
 */
function meaning(error: unknown): unknown {
  if (!(error instanceof StorageError)) return error;
  const said = `${error.message}: ${WHAT_TO_DO[error.fault]}`;
  if (OF_ONE_OBJECT.has(error.fault)) return new StorageError(error.fault, said, { cause: error });
  return new MillraceError('store_unreadable', said, { cause: error });
}
