import { randomBytes } from 'node:crypto';
import { SILENT } from '../core/sink.ts';
import type { ObjectStore } from '../core/storage.ts';
import { ManifestChain } from './manifest-chain.ts';
import { urlOf } from './places.ts';
import { planRepair, type RepairOptions, type RepairReport, requireKey } from './repair-plan.ts';
import { inspectArchive, verifyArchive } from './verify.ts';

/** A younger object may be one that its writer is about to list: nothing in a store says that a writer is at work. */
const SETTLED_MS = 15 * 60_000;

/**
 * Lists the whole objects that no writer has listed: one was killed between an object and its line, and without a disk nobody
 * takes up what it left. The lines go into a chain of their own, for all others belong to writers. Nothing else is done, as no
 * lock holds writers off; two repairs at once, or a writer that comes back, list an object twice, which says nothing new.
 */
export async function repairStore(
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
    if (state.modified > now - SETTLED_MS) young.push(line.file);
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
