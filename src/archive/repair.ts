import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, readdir, realpath, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { OPEN_FOLDER, WRITER_LOCK } from '../core/archive.ts';
import { folderError, MillraceError, messageOf } from '../core/errors.ts';
import { isStoreUrl } from '../core/place.ts';
import { SILENT } from '../core/sink.ts';
import type { ObjectStore } from '../core/storage.ts';
import { ensureFolder, errorCode, isMissing, isSystemError, syncFolder } from '../lib/durable.ts';
import { own } from '../lib/file-lock.ts';
import { ManifestChain } from './manifest-chain.ts';
import { ManifestWriter } from './manifest-writer.ts';
import { urlOf } from './places.ts';
import {
  planRepair,
  type RepairAction,
  type RepairOptions,
  type RepairPlan,
  type RepairReport,
  requireKey,
} from './repair-plan.ts';
import { inspectArchive, verifyArchive } from './verify.ts';

/** In the folder of what is not finished, while a repair runs. */
const REPAIR_LOCK = 'repair.lock';
/** A younger object may be one that its writer is about to list: nothing in a store says that a writer is at work. */
const SETTLED_MS = 15 * 60_000;

export type { RepairAction, RepairOptions, RepairReport } from './repair-plan.ts';

/**
 * Repairs what can be repaired of an archive, and verifies it again. No record and no whole line of the manifest is ever
 * changed: temporary files and a last line without its end go, files get back the names they are listed by, complete files
 * that are not listed are. A broken chain stays broken, for who links it anew takes away what it proves.
 * In a store only files are listed.
 * @throws MillraceError archive_unreadable; archive_in_use while a receiver, or another repair, writes to it; usage for
 *   want of the key
 */
export async function repairArchive(path: string, options: RepairOptions): Promise<RepairReport> {
  if (isStoreUrl(path)) {
    const { places } = options;
    if (places === undefined) throw new MillraceError('usage', `${path}: no object store can be used here`);
    return repairStore(path, options, (url) => places.store(url));
  }
  const at = new Date(options.now).toISOString();
  const release = options.dryRun ? null : await lockWriters(path);
  try {
    const before = await inspectArchive(path, options);
    const { root } = before.listing;
    const plan = planRepair(before, at);
    // That it cannot be opened shows before anything is done.
    await options.proof?.();
    if (plan.cut || plan.additions.length > 0) requireKey(path, before, options);
    if (options.dryRun) for (const action of plan.actions) options.onAction(action);
    else await apply(root, plan, options);
    const done = plan.actions.length > 0 && !options.dryRun;
    const after = done ? await verifyArchive(path, options) : before.report;
    return { actions: plan.actions, young: [], before: before.report, after };
  } finally {
    release?.();
  }
}

/**
 * Lists the whole objects that no writer has listed: one was killed between an object and its line, and without a disk nobody
 * takes up what it left. The lines go into a chain of their own, for all others belong to writers. Nothing else is done, as no
 * lock holds writers off; two repairs at once, or a writer that comes back, list an object twice, which says nothing new.
 */
async function repairStore(
  url: string,
  options: RepairOptions,
  open: (url: string) => Promise<ObjectStore>,
): Promise<RepairReport> {
  const { now, dryRun, onAction, proof } = options;
  const before = await inspectArchive(url, options);
  const additions = [];
  const young: string[] = [];
  for (const line of planRepair(before, new Date(now).toISOString()).additions) {
    const state = await before.listing.place.stat(line.file);
    if (state === null) continue;
    if (state.modifiedAt > now - SETTLED_MS) young.push(line.file);
    else additions.push(line);
  }
  const actions = additions.map(({ file }) => ({
    action: 'list_file' as const,
    file,
    detail: 'complete, and not in the manifest',
  }));
  if (additions.length > 0) requireKey(url, before, options);
  for (const action of actions) onAction(action);
  if (dryRun || additions.length === 0)
    return { actions, young, before: before.report, after: before.report };
  const chain = new ManifestChain({
    store: await open(urlOf(url)),
    writer: randomBytes(6).toString('hex'),
    log: SILENT,
    proof,
    folder: null,
    signal: options.signal ?? new AbortController().signal,
  });
  await chain.open();
  await chain.append(additions);
  return { actions, young, before: before.report, after: await verifyArchive(url, options) };
}

async function apply(root: string, plan: RepairPlan, { onAction, proof }: RepairOptions): Promise<void> {
  const say = (...actions: RepairAction['action'][]): void => {
    for (const one of plan.actions) if (actions.includes(one.action)) onAction(one);
  };
  say('remove_temporary');
  for (const file of plan.temporary) await unlink(join(root, file));
  say('move_file');
  for (const { from, to } of plan.moves) await move(root, from, to);
  const writer = new ManifestWriter(root, SILENT, proof);
  say('cut_line');
  if (plan.cut) await writer.repair();
  say('write_manifest', 'list_file');
  for (const line of plan.additions) await writer.append(line);
}

/** Never over another file: what stands there would be lost. */
async function move(root: string, from: string, to: string): Promise<void> {
  const folder = await ensureFolder(root, dirname(to) === '.' ? '' : dirname(to));
  const target = join(folder, basename(to));
  if (existsSync(target))
    throw new MillraceError('archive_unreadable', `${from} cannot be renamed to ${to}, which exists`);
  await rename(join(root, from), target);
  await syncFolder(folder);
  await syncFolder(dirname(join(root, from)));
}

/**
 * Holds off every writer of this archive, and every other repair; a new writer would take a folder of its own, and only
 * adds files.
 */
async function lockWriters(path: string): Promise<() => void> {
  const releases: (() => void)[] = [];
  const release = (): void => releases.forEach((one) => one());
  try {
    if (!(await hasOpenFolder(path))) return release;
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
    // Not an archive, as far as can be seen, or one that cannot be written.
    if (isSystemError(error) && !isMissing(error)) throw folderError(path, error);
    if (error instanceof MillraceError) throw error;
    throw new MillraceError('archive_unreadable', `${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Holds off repairs, and whoever else holds them off. @param path with a folder of unfinished files, or without one */
export async function holdRepairs(path: string): Promise<() => void> {
  await hasOpenFolder(path);
  const repair = await own(join(path, OPEN_FOLDER, REPAIR_LOCK), refusalOf(path));
  return () => repair.release('remove');
}

function refusalOf(path: string): (by: string) => MillraceError {
  return (by) => new MillraceError('archive_in_use', `${path} is being written by ${by}; stop that first`);
}

/** Makes it if need be. Not through a symbolic link: locks would be made in folders of somebody else's. */
async function hasOpenFolder(path: string): Promise<boolean> {
  try {
    return (await lstat(join(path, OPEN_FOLDER))).isDirectory();
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
    await ensureFolder(await realpath(path), OPEN_FOLDER);
    return true;
  }
}
