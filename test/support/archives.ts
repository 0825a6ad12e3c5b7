import { readArchive, type ReadOptions } from '../../src/archive/read.ts';
import type { JournalEvent } from '../../src/core/event.ts';
import type { OpenProof } from '../../src/core/proof.ts';
import type { Delivery } from '../../src/core/sink.ts';
import { openProof } from '../../src/privacy/proof/open.ts';
import { parseOptions } from '../../src/sinks/files/config.ts';
import { FilesSink } from '../../src/sinks/files/sink.ts';
import { makeContext, signal, type LogLine } from '../sinks/support.ts';

/** Each event for the sink's default place. */
export function batchOf(...events: readonly JournalEvent[]): Delivery[] {
  return events.map((event) => ({ event, destination: null }));
}

/** Of an installation whose erasures lie in this folder: the key lies there too, and there are no receipts. */
export function proofIn(folder: string): OpenProof {
  return openProof({
    erasure: { path: folder },
    proof: { key: null, trust: [] },
    receipts: { path: null },
  });
}

interface Writer {
  /** Options of the sink. */
  readonly options?: object;
  /** Signs the manifest. */
  readonly proof?: OpenProof;
  /** Events that are kept whole beside the records. */
  readonly kept?: readonly JournalEvent[];
  readonly whenOpen?: () => void;
  /** Ends as a receiver does that is killed: its files stay unfinished. */
  readonly killed?: boolean;
}

/**
 * Writes an archive as a receiver does that has these batches, one after the other, and ends.
 * @returns what it logged
 */
export async function writeFiles(
  path: string,
  batches: readonly (readonly Delivery[])[],
  { options = {}, proof, kept = [], whenOpen, killed = false }: Writer = {},
): Promise<readonly LogLine[]> {
  const context = { ...makeContext(), ...(proof === undefined ? {} : { proof }) };
  const sink = new FilesSink(parseOptions({ path, ...options }), context);
  await sink.open();
  whenOpen?.();
  for (const batch of batches) {
    const results = await sink.send(batch, signal);
    if (results.some(({ status }) => status !== 'delivered')) throw new Error(JSON.stringify(results));
  }
  for (const event of kept) await sink.keep(event);
  await sink.close(killed ? AbortSignal.abort() : signal);
  return context.lines;
}

/** Ids of the records that a reader finds, in order of the files; of what it cannot read, where and why. */
export async function idsRead(path: string, options: ReadOptions = {}): Promise<string[]> {
  return Array.fromAsync(readArchive(path, options), (item) =>
    item.kind === 'record' ? item.record.id : `${item.file}: ${item.reason}`,
  );
}
