import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, relative } from 'node:path';
import { hashFile } from '../archive/facts.ts';
import { DISK } from '../archive/place.ts';
import { MillraceError } from '../core/errors.ts';
import { readWhole } from '../core/objects.ts';
import { isStoreUrl } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { noteOutputs } from '../privacy/erase/outputs.ts';
import { isRecord } from '../lib/is-record.ts';
import { readState, workFolderFor, writeState } from '../lib/work-folder.ts';
import { configIfAny } from './config-options.ts';
import { type Io, usageError } from './io.ts';
import { owningFolder } from './own-folder.ts';
import { type Settings, withStore } from './places.ts';

export interface OutputPlace {
  /** A folder, or the URL of an object store. */
  readonly out: string;
  /** Local folder for what is not finished, when `out` is a URL. */
  readonly work: string | undefined;
  /** How it is reached. */
  readonly storage: Settings;
  /** What is made: `backfill`, `pull-users`; part of keys. */
  readonly kind: string;
  /** Equal for commands that ask for the same; null for one that takes what there is. */
  readonly asks: string | null;
  readonly signal: AbortSignal;
}

/** What a command has made: files in its folder. */
interface Made {
  readonly files: readonly string[];
}

/**
 * Makes files.
 * @param folder that nobody else writes meanwhile
 * @param onMade to be told when all files are complete, before what the command could resume from goes
 */
type Make<T extends Made> = (folder: string, onMade: (made: T) => Promise<void>) => Promise<T>;

const STATE = '_place.json';
/** What a backfill resumes from, and rejects of which there are none. */
const LEFT = ['_backfill', '_rejects.ndjson'];

interface State<T> {
  readonly url: string;
  readonly kind: string;
  readonly asks: string | null;
  readonly by: Readonly<Record<string, unknown>>;
  /** Complete files that are to be put; null until then. */
  readonly made: Complete<T> | null;
}

interface Complete<T> {
  readonly summary: T;
  readonly files: readonly Facts[];
}

interface Facts {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Makes files in a folder; or in a local one, and puts them into a store when all are complete. One run makes the files of a kind
 * in one place, and none is ever overwritten.
 * @throws MillraceError folder_in_use, folder_unwritable, usage; what `make` throws
 */
export async function makeInPlace<T extends Made>(place: OutputPlace, make: Make<T>): Promise<T> {
  const { out, work = workFolderFor(out) } = place;
  if (!isStoreUrl(out)) return owningFolder(out, () => make(out, () => Promise.resolve()));
  return withStore(out, place.storage, (store) =>
    owningFolder(work, () => new Output<T>(store, work, place).run(make)),
  );
}

/** The text of a file in a store that has all files of the kind; null where something of them is left to do. */
export async function textPut(place: OutputPlace, file: string): Promise<string | null> {
  const { out, work = workFolderFor(out), storage, kind, signal } = place;
  if (!isStoreUrl(out) || readState(work, STATE) !== null) return null;
  return withStore(out, storage, async (store) => {
    const isWhole = (await store.head(keyOf(kind, 'files'), signal)) !== null;
    return isWhole ? (await readWhole(store, file, signal)).toString() : null;
  });
}

function keyOf(kind: string, name: 'begun' | 'files'): string {
  return `_${kind}/${name}.json`;
}

class Output<T extends Made> {
  readonly #store: ObjectStore;
  readonly #folder: string;
  readonly #place: OutputPlace;

  constructor(store: ObjectStore, folder: string, place: OutputPlace) {
    this.#store = store;
    this.#folder = folder;
    this.#place = place;
  }

  async run(make: Make<T>): Promise<T> {
    const begun = this.#resumed() ?? (await this.#begin());
    await this.#claim(begun);
    return this.#put(begun.made ?? (await this.#make(make, begun)));
  }

  async #make(make: Make<T>, begun: State<T>): Promise<Complete<T>> {
    const saved: Complete<T>[] = [];
    const save = async (summary: T): Promise<void> => {
      const made = { summary, files: await this.#factsOf(summary) };
      await writeState(this.#folder, STATE, { ...begun, made });
      saved.push(made);
    };
    const summary = await make(this.#folder, save);
    if (saved.length === 0) await save(summary);
    return saved[0] as Complete<T>;
  }

  #resumed(): State<T> | null {
    const { out, kind, asks } = this.#place;
    const state = readState(this.#folder, STATE) as State<T> | null;
    const isSame =
      state?.url === out &&
      state.kind === kind &&
      (asks === null || state.asks === null || state.asks === asks);
    if (state === null || isSame) return state;
    throw usageError(
      `${this.#folder} holds an unfinished ${state.kind} to ${state.url}: run the same command again, or name another folder with --work`,
    );
  }

  async #begin(): Promise<State<T>> {
    const { out, kind, asks } = this.#place;
    const by = {
      host: hostname(),
      process: process.pid,
      work: this.#folder,
      at: new Date().toISOString(),
      id: randomUUID(),
    };
    const state = { url: out, kind, asks, by, made: null };
    await writeState(this.#folder, STATE, state);
    return state;
  }

  /** From here on the files of this kind are this run's. */
  async #claim({ by }: State<T>): Promise<void> {
    const { out, kind, signal } = this.#place;
    const bytes = Buffer.from(`${JSON.stringify(by)}\n`);
    const { status } = await this.#store.putIfAbsent(this.#key('begun'), { bytes }, signal);
    if (status === 'written') return;
    await rm(join(this.#folder, STATE), { force: true });
    const isDone = (await this.#store.head(this.#key('files'), signal)) !== null;
    if (isDone)
      throw usageError(
        `${out} has the files of a ${kind} already, and nothing there is overwritten: name another place`,
      );
    const other: unknown = JSON.parse((await readWhole(this.#store, this.#key('begun'), signal)).toString());
    const { host, process: pid, work, at } = isRecord(other) ? other : {};
    throw new MillraceError(
      'folder_in_use',
      `${out}: process ${String(pid)} on ${String(host)} (work folder ${String(work)}, ${String(at)}) has begun a ${kind} there; ` +
        'continue it there, or name another place',
    );
  }

  async #factsOf({ files }: T): Promise<Facts[]> {
    const facts: Facts[] = [];
    for (const path of files)
      facts.push({ file: relative(this.#folder, path), ...(await hashFile(DISK, path)) });
    return facts;
  }

  /** The list of them is last: where it is, all of them are. */
  async #put({ summary, files }: Complete<T>): Promise<T> {
    const { signal, out } = this.#place;
    for (const { file, bytes: size, sha256 } of files) {
      const { status } = await this.#store.putIfAbsent(
        file,
        { file: join(this.#folder, file), size, sha256 },
        signal,
      );
      if (status === 'taken')
        throw usageError(`${out}/${file} is there, with other content: name another place`);
    }
    const list = Buffer.from(`${JSON.stringify({ files })}\n`);
    await this.#store.putIfAbsent(this.#key('files'), { bytes: list }, signal);
    // The state goes first: without it, what else is left is nobody's.
    for (const name of [STATE, ...files.map(({ file }) => file), ...LEFT])
      await rm(join(this.#folder, name), { recursive: true, force: true });
    return { ...summary, files: files.map(({ file }) => `${out}/${file}`) };
  }

  #key(name: 'begun' | 'files'): string {
    return keyOf(this.#place.kind, name);
  }
}

/** Has erasures look where a command is about to write tables, and where it keeps them until they are complete. */
export async function noteOutput(
  io: Io,
  config: string | undefined,
  out: string,
  work?: string,
): Promise<void> {
  const loaded = configIfAny({ config }, io);
  // Without a config nothing says who erases.
  if (loaded === null) return;
  const places = isStoreUrl(out) ? [out, work ?? workFolderFor(out)] : [out];
  await noteOutputs(loaded.config.erasure.path, places);
}
