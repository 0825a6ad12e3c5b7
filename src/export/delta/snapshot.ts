import type { Action, AddFile, MetaData, Protocol, RemoveFile, Txn } from './actions.ts';
import { randomBytes } from 'node:crypto';

/** A table at one version: its log, replayed up to there. */
export class Snapshot {
  /** -1 before the first commit. */
  version = -1;
  /** Version of the newest checkpoint; -1 for none. */
  checkpoint = -1;
  protocol: Protocol | null = null;
  metaData: MetaData | null = null;
  /** By path as the log has it. */
  readonly files = new Map<string, AddFile>();
  /** Files that were removed, by path. */
  readonly tombstones = new Map<string, RemoveFile>();
  /** By application. */
  readonly txns = new Map<string, Txn>();

  get exists(): boolean {
    return this.version >= 0;
  }

  apply(version: number, actions: readonly Action[]): void {
    for (const { protocol, metaData, remove, txn } of actions) {
      if (protocol) this.protocol = protocol;
      if (metaData) this.metaData = metaData;
      if (txn) this.txns.set(txn.appId, txn);
      if (remove) {
        this.files.delete(remove.path);
        this.tombstones.set(remove.path, remove);
      }
    }
    // Adds after removes, in any order of lines: a path in both has a new deletion vector, or new statistics.
    for (const { add } of actions) {
      if (!add) continue;
      this.tombstones.delete(add.path);
      this.files.set(add.path, add);
    }
    this.version = version;
  }
}

/** Features that only restrict a table, and that we know. */
const FEATURES: ReadonlySet<string> = new Set(['appendOnly', 'invariants']);

/** Why this program must not write the table, in words; null when it may. A writer has to know all features of a table. */
export function unsupported({ protocol, metaData }: Snapshot): string | null {
  if (protocol === null || metaData === null) return 'its log has no protocol or no metadata';
  const { minReaderVersion, minWriterVersion, readerFeatures = [], writerFeatures = [] } = protocol;
  const unknown = [...new Set([...(readerFeatures ?? []), ...(writerFeatures ?? [])])].filter(
    (feature) => !FEATURES.has(feature),
  );
  if (unknown.length > 0) return `another writer has given it features: ${unknown.join(', ')}`;
  if (![1, 3].includes(minReaderVersion) || ![1, 2, 7].includes(minWriterVersion))
    return `its protocol is reader version ${minReaderVersion}, writer version ${minWriterVersion}`;
  if (metaData.schemaString.includes('"delta.invariants"')) return 'its columns have invariants';
  if (metaData.configuration['delta.appendOnly'] === 'true')
    return 'it only takes appends (delta.appendOnly)';
  return null;
}

/** Folder of the log. */
export const LOG_FOLDER = '_delta_log';

export function commitName(version: number): string {
  return `${padded(version)}.json`;
}

export function checkpointName(version: number): string {
  return `${padded(version)}.checkpoint.parquet`;
}

function padded(version: number): string {
  return String(version).padStart(20, '0');
}

const KEPT = /\.kept-[0-9a-f]+(?=\.parquet$)/;

/** A new name for the rest of a data file; `originOf` finds the old one. */
export function rewriteName(key: string): string {
  return originOf(key).replace(/(\.parquet)?$/, `.kept-${randomBytes(6).toString('hex')}.parquet`);
}

/** The first name of a data file. */
export function originOf(key: string): string {
  return key.replace(KEPT, '');
}
