import { parseSegmentKey, type Segment, SEGMENTS } from './segments.ts';
import { MillraceError, messageOf } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import {
  type ObjectStore,
  StorageError,
  type StorageFault,
  type StoredObject,
  WHAT_TO_DO,
} from '../core/storage.ts';
import { FetchAhead } from '../lib/fetch-ahead.ts';
import { walkFolder } from '../lib/walk-folder.ts';
import { byKind, isUnfinished, kindOf } from './file-kind.ts';
import { linesOf } from './kept-segments.ts';
import type { ArchiveListing, ArchivePlace, Slice } from './place.ts';
import { ReplacedFiles, untilGone } from './replaced-files.ts';
import { filesThatCount } from './files-that-count.ts';

/** Objects of a remote store that are fetched early, and bytes held of each: 16 requests and 32 MiB at a time. */
const AHEAD = { width: 16, most: 2 * 1024 * 1024 };

interface JoinedSegment {
  readonly segment: Segment;
  readonly lines: readonly string[];
}

/** An archive in a folder or an object store. */
export class StoredArchive implements ArchivePlace {
  readonly root: string;
  readonly #open: () => Promise<ObjectStore>;
  readonly #only: string | null;
  readonly #isRemote: boolean;
  readonly #ahead: FetchAhead;
  readonly #replaced = new ReplacedFiles(this, (file, offset) => this.#get(file, offset));
  #joined: JoinedSegment | null = null;
  /** Objects of the last listing; empty for a folder. */
  #listed: ReadonlyMap<string, StoredObject> = new Map();

  /**
   * @param root an absolute folder without symbolic links, or a URL
   * @param open the same store each time
   * @param options.only the only file of it that is read; null for all
   */
  constructor(
    root: string,
    open: () => Promise<ObjectStore>,
    { only = null, isRemote = isStoreUrl(root) }: { only?: string | null; isRemote?: boolean } = {},
  ) {
    this.root = root;
    this.#open = open;
    this.#only = only;
    this.#isRemote = isRemote;
    this.#ahead = new FetchAhead({ ...AHEAD, open: (file) => this.#read(file) });
  }

  /** An archive in an object store that is open. */
  static in(store: ObjectStore): StoredArchive {
    return new StoredArchive(store.url, () => Promise.resolve(store), { isRemote: true });
  }

  async list(): Promise<ArchiveListing> {
    const about = { place: this, root: this.root, isFolder: this.#only === null };
    if (this.#only !== null) return { ...about, ...byKind([]), files: [this.#only], aside: [] };
    try {
      const { files, notFollowed } = await this.#find();
      const kinds = byKind(files);
      // Listed after the files: a compaction writes its line before it removes one of these.
      const manifest = this.#isRemote ? await this.segments() : kinds.manifest;
      const counted = await filesThatCount(this, { files: kinds.files, manifest });
      return { ...about, ...kinds, ...counted, manifest, notFollowed };
    } catch (error) {
      if (this.#isRemote) throw this.#explained(error);
      throw new MillraceError('archive_unreadable', `${this.root}: ${messageOf(error)}`, { cause: error });
    }
  }

  chunks(file: string): AsyncIterable<Buffer> {
    return this.#ahead.read(file);
  }

  async stat(file: string): Promise<StoredObject | null> {
    const listed = this.#listed.get(file);
    if (listed !== undefined) return listed;
    try {
      return await (await this.#open()).head(file);
    } catch (error) {
      // A link, or a path through a file.
      if (!this.#isRemote && error instanceof StorageError && error.fault === 'invalid') return null;
      throw this.#explained(error);
    }
  }

  sliceOf(file: string): Promise<Slice | null> {
    return this.#replaced.sliceOf(file);
  }

  expect(files: Iterable<string>): void {
    if (this.#isRemote) this.#ahead.expect(files);
  }

  close(): Promise<void> {
    return this.#ahead.close();
  }

  /** The objects of the manifest. */
  async segments(): Promise<string[]> {
    try {
      const store = await this.#open();
      const segments = await Array.fromAsync(store.list(SEGMENTS), ({ key }) => key);
      return segments.filter((key) => kindOf(key) === 'manifest').toSorted();
    } catch (error) {
      throw this.#explained(error);
    }
  }

  /** The store's own listing leaves out links and files in progress, so a folder is walked. */
  async #find(): Promise<{ readonly files: readonly string[]; readonly notFollowed: readonly string[] }> {
    if (!this.#isRemote) {
      // A writer removes its folder of unfinished files; any other folder must be there.
      const { files, links, others } = await walkFolder(this.root, { mayGo: isUnfinished });
      return { files, notFollowed: [...links, ...others].sort() };
    }
    const store = await this.#open();
    this.#listed = new Map(await Array.fromAsync(store.list(''), (object) => [object.key, object]));
    return { files: [...this.#listed.keys()], notFollowed: [] };
  }

  async *#read(file: string): AsyncGenerator<Buffer> {
    const segment = parseSegmentKey(file);
    try {
      yield* segment === null ? this.#replaced.read(file) : this.#readSegment(file, segment);
    } catch (error) {
      throw this.#explained(error);
    }
  }

  /** A segment; when its writer has joined it with others since it was listed, its lines in the joined one. */
  async *#readSegment(file: string, segment: Segment): AsyncGenerator<Buffer> {
    const gone = yield* untilGone(this.#get(file, 0));
    if (gone === null) return;
    const joined = contains(this.#joined?.segment, segment) ? this.#joined : await this.#findJoined(segment);
    if (joined === null) throw gone.error;
    this.#joined = joined;
    const lines = joined.lines.slice(segment.first - joined.segment.first).slice(0, lengthOf(segment));
    yield Buffer.from(lines.map((line) => `${line}\n`).join('')).subarray(gone.got);
  }

  async #findJoined(wanted: Segment): Promise<JoinedSegment | null> {
    for (const key of await this.segments()) {
      const segment = parseSegmentKey(key);
      if (segment === null || !contains(segment, wanted) || lengthOf(segment) === lengthOf(wanted)) continue;
      const bytes = await Array.fromAsync(this.#readSegment(key, segment));
      return { segment, lines: linesOf(Buffer.concat(bytes)) };
    }
    return null;
  }

  async *#get(file: string, offset: number): AsyncGenerator<Buffer> {
    yield* (await this.#open()).get(file, { offset });
  }

  /**
   * The error for readers of the archive. A store that does not answer ends the reading; a fault of one object or
   * one local file does not.
   */
  #explained(error: unknown): unknown {
    if (!(error instanceof StorageError)) return error;
    if (!this.#isRemote) return error.cause ?? error;
    const said = `${error.message}: ${WHAT_TO_DO[error.fault]}`;
    if (OF_ONE_OBJECT.has(error.fault)) return new StorageError(error.fault, said, { cause: error });
    return new MillraceError('store_unreadable', said, { cause: error });
  }
}

const OF_ONE_OBJECT: ReadonlySet<StorageFault> = new Set([
  'missing',
  'changed',
  'archived',
  'immutable',
  'invalid',
]);

function contains(large: Segment | undefined, { writer, first, last }: Segment): boolean {
  return large?.writer === writer && large.first <= first && large.last >= last;
}

function lengthOf({ first, last }: Segment): number {
  return last - first + 1;
}
