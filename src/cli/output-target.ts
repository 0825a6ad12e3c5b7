import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, relative } from 'node:path';
import { readPlain } from '../lib/durable.ts';
import { hashChunks } from '../lib/hash-chunks.ts';
import { MillraceError } from '../core/errors.ts';
import { FOLDER as BACKFILL, STATE as BACKFILL_STATE } from '../history/backfill/checkpoint.ts';
import { readWhole } from '../core/objects.ts';
import { isStoreUrl } from '../core/place.ts';
import type { ObjectStore } from '../core/storage.ts';
import { noteOutputs } from '../privacy/erase/outputs.ts';
import { isRecord } from '../lib/parsed.ts';
import { readState, removeRun, workFolderFor, writeState } from '../lib/work-folder.ts';
import { configIfAny } from './config-options.ts';
import { type Io, usageError } from './io.ts';
import { owningFolder } from './own-folder.ts';
import { type Settings, withStore } from './places.ts';

/** Where a command writes its tables. */
export interface OutputTarget {
  /** A folder, or the URL of an object store. */
  readonly out: string;
  /** Local folder for unfinished files when `out` is a URL. */
  readonly work: string | undefined;
  /** How the store is reached. */
  readonly storage: Settings;
  /** Such as `backfill` or `pull-users`; part of object keys. */
  readonly kind: string;
  /** Equal for command lines that make the same files; null for --resume. */
  readonly asks: string | null;
  readonly signal: AbortSignal;
  /** Notes for erasures where tables will be, once the folder is there and before a table is. */
  readonly note: () => Promise<void>;
}

/** Summary of a command with the paths of its files. */
interface Made {
  readonly files: readonly string[];
}

/**
 * Makes files in a local folder that it owns.
 * @param onMade must be called when all files are complete, before the state of the command is removed
 */
type Make<T extends Made> = (folder: string, onMade: (made: T) => Promise<void>) => Promise<T>;

/** State of an upload, in the work folder. */
const STATE = '_place.json';
/** A file of rejects that may be empty. */
const LEFT = '_rejects.ndjson';

interface UploadState<T> {
  readonly url: string;
  readonly kind: string;
  readonly asks: string | null;
  readonly by: Readonly<Record<string, unknown>>;
  /** Null until all files are complete. */
  readonly made: CompleteFiles<T> | null;
}

interface CompleteFiles<T> {
  readonly summary: T;
  readonly files: readonly { readonly file: string; readonly bytes: number; readonly sha256: string }[];
}

/**
 * Makes files in a folder. For a URL it makes them in the work folder and uploads them when all are complete; one run
 * makes the files of a kind at a URL, and nothing there is overwritten.
 * @throws MillraceError folder_in_use, folder_unwritable, usage; errors of `make`
 */
export async function makeOutput<T extends Made>(target: OutputTarget, make: Make<T>): Promise<T> {
  const { out, work = workFolderFor(out), storage } = target;
  const noted = (folder: string, run: () => Promise<T>): Promise<T> =>
    owningFolder(folder, () => target.note().then(run));
  if (!isStoreUrl(out)) return noted(out, () => make(out, () => Promise.resolve()));
  return withStore(out, storage, (store) =>
    noted(work, () => makeAndPut({ ...target, store, folder: work }, make)),
  );
}

/**
 * Text of a file in a store; null until all files of the kind were uploaded.
 * @throws MillraceError rows_missing when one of these is gone
 */
export async function textPut(target: OutputTarget, file: string): Promise<string | null> {
  const { out, work = workFolderFor(out), storage, kind, signal } = target;
  if (!isStoreUrl(out) || readState(work, STATE) !== null) return null;
  return withStore(out, storage, async (store) => {
    const list = keyOf(kind, 'files');
    if ((await store.head(list, signal)) === null) return null;
    const uploaded = JSON.parse((await readWhole(store, list, signal)).toString()) as Pick<
      CompleteFiles<Made>,
      'files'
    >;
    for (const { file: name } of uploaded.files)
      if ((await store.head(name, signal)) === null)
        throw new MillraceError('rows_missing', `${out}/${name} is not there, and ${list} names it`);
    return (await readWhole(store, file, signal)).toString();
  });
}

function keyOf(kind: string, name: 'begun' | 'files'): string {
  return `_${kind}/${name}.json`;
}

interface Upload extends OutputTarget {
  readonly store: ObjectStore;
  /** The work folder. */
  readonly folder: string;
}

/** Makes files in a work folder and uploads them; a killed run continues where it was. */
async function makeAndPut<T extends Made>(upload: Upload, make: Make<T>): Promise<T> {
  const { folder } = upload;
  const state = resumed<T>(upload) ?? (await begin(upload));
  await claim(upload, state.by);
  let made = state.made;
  const save = async (summary: T): Promise<CompleteFiles<T>> => {
    made = { summary, files: await hashFiles(folder, summary) };
    await writeState(folder, STATE, { ...state, made });
    return made;
  };
  if (made !== null) return put(upload, made);
  const summary = await make(folder, async (complete) => void (await save(complete)));
  return put(upload, made ?? (await save(summary)));
}

function resumed<T>({ folder, out, kind, asks }: Upload): UploadState<T> | null {
  const state = readState(folder, STATE) as UploadState<T> | null;
  const isSame =
    state?.url === out &&
    state.kind === kind &&
    (asks === null || state.asks === null || state.asks === asks);
  if (state === null || isSame) return state;
  throw usageError(
    `${folder} holds an unfinished ${state.kind} to ${state.url}: run the same command again, or name another folder with --work`,
  );
}

async function begin({ folder, out, kind, asks }: Upload): Promise<UploadState<never>> {
  const by = {
    host: hostname(),
    process: process.pid,
    work: folder,
    at: new Date().toISOString(),
    id: randomUUID(),
  };
  const state = { url: out, kind, asks, by, made: null };
  await writeState(folder, STATE, state);
  return state;
}

/** Reserves the files of this kind at the URL for this run. */
async function claim({ store, folder, out, kind, signal }: Upload, by: object): Promise<void> {
  const bytes = Buffer.from(`${JSON.stringify(by)}\n`);
  const { status } = await store.putIfAbsent(keyOf(kind, 'begun'), { bytes }, signal);
  if (status === 'written') return;
  await rm(join(folder, STATE), { force: true });
  if ((await store.head(keyOf(kind, 'files'), signal)) !== null)
    throw usageError(
      `${out} has the files of a ${kind} already, and nothing there is overwritten: name another place`,
    );
  const other: unknown = JSON.parse((await readWhole(store, keyOf(kind, 'begun'), signal)).toString());
  const { host, process: pid, work, at } = isRecord(other) ? other : {};
  throw new MillraceError(
    'folder_in_use',
    `${out}: process ${String(pid)} on ${String(host)} (work folder ${String(work)}, ${String(at)}) has begun a ${kind} there; ` +
      'continue it there, or name another place',
  );
}

async function hashFiles(folder: string, { files }: Made): Promise<CompleteFiles<Made>['files']> {
  const hashed: CompleteFiles<Made>['files'][number][] = [];
  for (const path of files)
    hashed.push({ file: relative(folder, path), ...(await hashChunks(readPlain(path))) });
  return hashed;
}

/** Uploads the files, then the list of them: the list proves that all are there. */
async function put<T extends Made>(
  { store, folder, out, kind, signal }: Upload,
  { summary, files }: CompleteFiles<T>,
): Promise<T> {
  for (const { file, bytes: size, sha256 } of files) {
    const { status } = await store.putIfAbsent(file, { file: join(folder, file), size, sha256 }, signal);
    if (status === 'taken')
      throw usageError(`${out}/${file} is there, with other content: name another place`);
  }
  const list = Buffer.from(`${JSON.stringify({ files })}\n`);
  await store.putIfAbsent(keyOf(kind, 'files'), { bytes: list }, signal);
  // The state first: without it the next run ignores the other files.
  for (const name of [STATE, ...files.map(({ file }) => file), LEFT])
    await rm(join(folder, name), { recursive: true, force: true });
  await removeRun(join(folder, BACKFILL), BACKFILL_STATE);
  return { ...summary, files: files.map(({ file }) => `${out}/${file}`) };
}

/**
 * Tells erasures where a command is about to write tables. They wait for a noted folder that is not there, so it is made before.
 * Without a config there are no erasures.
 */
export async function noteOutput(
  io: Io,
  config: string | undefined,
  out: string,
  work?: string,
): Promise<void> {
  const loaded = configIfAny({ config }, io);
  if (loaded === null) return;
  const places = isStoreUrl(out) ? [out, work ?? workFolderFor(out)] : [out];
  await noteOutputs(loaded.config.erasure.path, places);
}
