import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Disk } from './disk.ts';
import type { Erased, History, Sent } from './history.ts';
import { parseLog, type Op } from './log.ts';
import { treeOf } from './tree.ts';

/** What the receiver has said by an answer, and is bound to from that operation on. */
export interface Said {
  readonly at: number;
  readonly acknowledged: Sent | null;
  readonly erased: Erased | null;
}

/** A run, taken apart. */
export interface Recording {
  readonly history: History;
  readonly ops: readonly Op[];
  readonly said: readonly Said[];
  /** Configs, each with the operation from which on a start has it. */
  readonly configs: readonly { readonly at: number; readonly table: number; readonly text: string }[];
}

/** @throws when what was recorded is not all that the sender and the disk know of */
export function takeApart(history: History, log: Buffer): Recording {
  const { ops, places } = parseLog(log, history.root);
  const said = saidIn(ops, history);
  const heard = new Set(said.map(({ acknowledged }) => acknowledged));
  const missing = history.events.find((event) => event.acknowledged && !heard.has(event));
  if (missing !== undefined) throw new Error(`the answer to ${missing.id} was not recorded`);
  const unsaid = history.erasures.find((one) => one.isDone && !said.some(({ erased }) => erased === one));
  if (unsaid !== undefined) throw new Error(`the answer with receipt ${unsaid.receipt} was not recorded`);
  const configs = history.configs.map(({ from, ...config }) => ({
    ...config,
    at: places.filter((place) => place < from).length,
  }));
  return { history, ops, said, configs };
}

function saidIn(ops: readonly Op[], { events, erasures }: History): Said[] {
  const byId = new Map(events.map((event) => [event.id, event]));
  const byReceipt = new Map(erasures.map((one) => [one.receipt, one]));
  const said: Said[] = [];
  for (const [at, op] of ops.entries()) {
    if (op.kind !== 'answer' || !/^HTTP\/1\.1 20[02] /.test(op.text)) continue;
    const [, id = ''] = /"status":"(?:accepted|quarantined|duplicate)","id":"([^"]+)"/.exec(op.text) ?? [];
    const event = byId.get(id);
    if (event !== undefined) said.push({ at, acknowledged: event, erased: null });
    byId.delete(id);
    for (const [, receipt = ''] of op.text.matchAll(/"receipt":"([0-9a-f]+)"/g)) {
      const done = byReceipt.get(receipt);
      if (done === undefined) continue;
      said.push({ at, acknowledged: null, erased: done });
      byReceipt.delete(receipt);
    }
  }
  return said;
}

/**
 * Where nothing is lost, the model has to come to the disk as it really is: then the recorder has missed nothing.
 * @param ops all of them; the real files lie at `root`
 * @returns paths that differ
 */
export function differencesFromReal(ops: readonly Op[], root: string): string[] {
  const disk = new Disk();
  for (const [at, op] of ops.entries()) disk.apply(op, at);
  const tree = treeOf(disk, { kept: new Set(disk.namings), files: new Map() });
  const modelled = new Map<string, Buffer | null>(tree.files.map(({ path, bytes }) => [path, bytes]));
  for (const folder of tree.folders) modelled.set(folder, null);
  const different: string[] = [];
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name).slice(root.length + 1);
    const bytes = modelled.get(path);
    const isSame = entry.isDirectory()
      ? bytes === null
      : bytes?.equals(readFileSync(join(root, path))) === true;
    if (!isSame) different.push(path);
    modelled.delete(path);
  }
  return [...different, ...modelled.keys()];
}
