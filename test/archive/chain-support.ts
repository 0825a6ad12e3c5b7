import { ManifestChain, type ChainOptions } from '../../src/archive/manifest-chain.ts';
import { SILENT } from '../../src/core/sink.ts';
import { signal } from '../sinks/support.ts';
import type { MemoryStore } from './memory-store.ts';
import { segmentName } from './store-archive.ts';

export const WRITER = '0123456789ab';

/** A line of a manifest for a made-up file. */
export const line = (file: string) => ({
  file,
  records: 1,
  bytes: 1,
  sha256: 'ab',
  first_received_at: '2026-11-21T00:00:00.000Z',
  last_received_at: '2026-11-21T00:00:00.000Z',
  types: {},
});

/** Key of the writer's segment with these lines. */
export const key = (from: number, to = from): string => segmentName(WRITER, from, to);

export function chainIn(
  store: MemoryStore,
  folder: string | null = null,
  more: Partial<ChainOptions> = {},
): ManifestChain {
  return new ManifestChain({ store, writer: WRITER, log: SILENT, folder, signal, ...more });
}

/** The same, opened. */
export async function openChain(...given: Parameters<typeof chainIn>): Promise<ManifestChain> {
  const chain = chainIn(...given);
  await chain.open();
  return chain;
}

/** Appends lines one after the other, from `f<from>` up to `f<to>`, without that. */
export async function appendEach(chain: ManifestChain, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += 1) await chain.append([line(`dt=2026-11-21/f${at}.ndjson`)]);
}
