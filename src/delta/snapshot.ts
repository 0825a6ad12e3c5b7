import type { Action, AddFile, MetaData, Protocol, RemoveFile, Txn } from './actions.ts';

/** What a table is at one version: its log, replayed up to there. */
export class Snapshot {
  /** -1 before the first commit. */
  version = -1;
  /** Of the newest checkpoint there is. */
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
    // The order of lines in a commit says nothing: a path in both has another deletion vector, or other statistics.
    for (const { add } of actions) {
      if (!add) continue;
      this.tombstones.delete(add.path);
      this.files.set(add.path, add);
    }
    this.version = version;
  }
}
