import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, readdir, realpath, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { OPEN_FOLDER, WRITER_LOCK } from '../core/archive.ts';
import type { NewManifestLine } from '../core/archive-manifest.ts';
import { folderError, MillraceError, messageOf } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { SILENT } from '../core/sink.ts';
import { NEVER } from '../lib/abort.ts';
import { ensureFolder, errorCode, isMissing, isSystemError, syncFolder } from '../lib/durable.ts';
import { own } from '../lib/file-lock.ts';
import { ManifestChain } from './manifest-chain.ts';
import { ManifestWriter } from './manifest-writer.ts';
import { Places } from './places.ts';
import {
  listAction,
  planRepair,
  type RepairAction,
  type RepairOptions,
  type RepairPlan,
  type RepairReport,
} from './repair-plan.ts';
import { inspectArchive, verifyArchive, type Inspection } from './verify.ts';

/** In the folder of unfinished files, while a repair runs. */
const REPAIR_LOCK = 'repair.lock';
/** The writer of a younger object may be about to list it: nothing in a store says that a writer runs. */
const SETTLED_MS = 15 * 60_000;

/**
 * Repairs an archive, and verifies it again. No record and no whole line of the manifest is ever changed: temporary
 * files and a last line without its end are removed, files get back the names they are listed by, complete files are
 * listed. A broken chain stays broken, as it proves a change. In a store only files are listed, in a chain of their own.
 * @throws MillraceError archive_unreadable; archive_in_use while a receiver or another repair writes to it; usage
 *   without the key of a signed manifest
 */
export async function repairArchive(path: string, options: RepairOptions): Promise<RepairReport> {
  const { now, dryRun, onAction, proof } = options;
  // No lock keeps writers away from a store. A line that is added twice says nothing new.
  const release = dryRun || isStoreUrl(path) ? null : await lockWriters(path);
  try {
    const before = await inspectArchive(path, options);
    const whole = planRepair(before, new Date(now).toISOString());
    const { plan, young } = isStoreUrl(path)
      ? await settledPlan(before, whole, now)
      : { plan: whole, young: [] };
    // A key that cannot be opened shows before anything is done.
    await proof?.();
    const isSigned = (before.manifest?.signatures.signed ?? 0) > 0;
    if ((plan.cut || plan.additions.length > 0) && isSigned && proof === undefined)
      throw new MillraceError(
        'usage',
        `${path}: its manifest is signed, so --repair needs the key from --config`,
      );
    if (dryRun) for (const action of plan.actions) onAction(action);
    else await apply(before.listing.root, plan, options);
    const isDone = plan.actions.length > 0 && !dryRun;
    const after = isDone ? await verifyArchive(path, options) : before.report;
    return { actions: plan.actions, young, before: before.report, after };
  } finally {
    release?.();
  }
}

/** The part of a plan that is carried out in a store. */
async function settledPlan({ listing }: Inspection, { additions: found }: RepairPlan, now: number) {
  const additions = [];
  const young: string[] = [];
  for (const line of found) {
    const state = await listing.place.stat(line.file);
    if (state === null) continue;
    if (state.modifiedAt > now - SETTLED_MS) young.push(line.file);
    else additions.push(line);
  }
  const actions = additions.map(({ file }) => listAction(file));
  return { plan: { actions, temporary: [], cut: false, moves: [], additions }, young };
}

async function apply(root: string, plan: RepairPlan, options: RepairOptions): Promise<void> {
  const { onAction, proof } = options;
  const say = (...actions: RepairAction['action'][]): void => {
    for (const one of plan.actions) if (actions.includes(one.action)) onAction(one);
  };
  say('remove_temporary');
  for (const file of plan.temporary) await unlink(join(root, file));
  say('move_file');
  for (const { from, to } of plan.moves) await move(root, from, to);
  if (isStoreUrl(root)) {
    say('list_file');
    if (plan.additions.length > 0) await appendToNewChain(root, plan.additions, options);
    return;
  }
  const writer = new ManifestWriter(root, SILENT, proof);
  say('cut_line');
  if (plan.cut) await writer.repair();
  say('write_manifest', 'list_file');
  for (const line of plan.additions) await writer.append(line);
}

/** All other chains belong to writers. */
async function appendToNewChain(
  url: string,
  lines: readonly NewManifestLine[],
  { places = new Places(), proof, signal = NEVER }: RepairOptions,
): Promise<void> {
  const store = await places.store(url);
  const writer = randomBytes(6).toString('hex');
  const chain = new ManifestChain({ store, writer, log: SILENT, proof, folder: null, signal });
  await chain.open();
  await chain.append(lines);
}

/** Never replaces another file. */
async function move(root: string, from: string, to: string): Promise<void> {
  const folder = await ensureFolder(root, dirname(to) === '.' ? '' : dirname(to));
  const target = join(folder, basename(to));
  if (existsSync(target))
    throw new MillraceError('archive_unreadable', `${from} cannot be renamed to ${to}, which exists`);
  await rename(join(root, from), target);
  await syncFolder(folder);
  await syncFolder(dirname(join(root, from)));
}

/** Keeps out the writers of this archive, and other repairs. A new writer uses a folder of its own, and only adds files. */
async function lockWriters(path: string): Promise<() => void> {
  const releases: (() => void)[] = [];
  const release = (): void => releases.forEach((one) => one());
  try {
    if (!(await madeOpenFolder(path))) return release;
    releases.push(await holdRepairs(path));
    const refusal = refusalOf(path);
    for (const entry of await readdir(join(path, OPEN_FOLDER), { withFileTypes: true })) {
      if (!entry.isDirectory()) continue;
      const writer = await own(join(path, OPEN_FOLDER, entry.name, WRITER_LOCK), refusal);
      releases.push(() => writer.release());
    }
    return release;
  } catch (error) {
    release();
    if (isSystemError(error) && !isMissing(error)) throw folderError(path, error);
    if (error instanceof MillraceError) throw error;
    throw new MillraceError('archive_unreadable', `${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Keeps out repairs and compactions. */
export async function holdRepairs(path: string): Promise<() => void> {
  await madeOpenFolder(path);
  const repair = await own(join(path, OPEN_FOLDER, REPAIR_LOCK), refusalOf(path));
  return () => repair.release('remove');
}

function refusalOf(path: string): (by: string) => MillraceError {
  return (by) => new MillraceError('archive_in_use', `${path} is being written by ${by}; stop that first`);
}

/** Creates the folder if it is missing. @returns false when it is a link: behind it, locks would be in another's folder */
async function madeOpenFolder(path: string): Promise<boolean> {
  try {
    return (await lstat(join(path, OPEN_FOLDER))).isDirectory();
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
    await ensureFolder(await realpath(path), OPEN_FOLDER);
    return true;
  }
}
