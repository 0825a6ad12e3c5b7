import { generateKeyPairSync } from 'node:crypto';
import { closeSync, openSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { ENTRY_BYTES, NO_EVENT } from '../../src/core/receipt.ts';
import { writeDurably } from '../../src/lib/new-file.ts';
import { leafHash } from '../../src/receipts/hashing.ts';
import { CHECKPOINT, LogReader } from '../../src/receipts/log-files.ts';
import { openLog } from '../../src/receipts/log-source.ts';
import { checkpointText, noteSigner, signNote } from '../../src/receipts/note.ts';
import { parseProof, verifyProof } from '../../src/receipts/proof-text.ts';
import { rootOf, TILE_WIDTH } from '../../src/receipts/tiles.ts';
import { bench, FOLDER } from './bench.ts';

/** A log of equal entries, whose tiles are known without hashing them all: to read, it is as any other. */
async function makeLog(folder: string, size: number): Promise<ReturnType<typeof noteSigner>> {
  const entries = join(folder, 'entries');
  closeSync(openSync(entries, 'w'));
  truncateSync(entries, size * ENTRY_BYTES);
  let hash = leafHash(NO_EVENT);
  for (let level = 1; level < 6; level += 1) {
    const row = Buffer.concat(Array.from({ length: TILE_WIDTH }, () => hash));
    hash = rootOf(row);
    const fd = openSync(join(folder, `hashes-${level}`), 'w');
    const next = Buffer.concat(Array.from({ length: TILE_WIDTH }, () => hash));
    for (let left = Math.floor(size / TILE_WIDTH ** level); left > 0; left -= TILE_WIDTH)
      writeSync(fd, next, 0, Math.min(left, TILE_WIDTH) * ENTRY_BYTES);
    closeSync(fd);
  }
  const signer = noteSigner('made-up.example/bench', generateKeyPairSync('ed25519').privateKey);
  const root = await new LogReader(folder).tree(size).root();
  const note = signNote(checkpointText({ origin: signer.name, size, root }), signer);
  await writeDurably(folder, CHECKPOINT, note);
  return signer;
}

/** What a proof takes in a large log. */
export const receipts = bench(
  'proofs from a log of a hundred million entries',
  {
    entries: [100_000_000, 'entries of the log: 3.2 GB, of which the file system keeps the zeros to itself'],
    proofs: [50, 'proofs that are asked for'],
    folder: FOLDER,
  },
  async ({ entries, proofs }, { folder, note }) => {
    const signer = await makeLog(folder, entries);
    note(`made a log of ${entries} entries`);
    const log = openLog(folder);
    const taken: number[] = [];
    for (let n = 0; n < proofs; n += 1) {
      const index = Math.floor(Math.random() * entries);
      const asked = performance.now();
      const proof = await log.proof(index);
      taken.push(performance.now() - asked);
      const verdict = proof === null ? null : verifyProof(NO_EVENT, parseProof(proof), signer);
      if (verdict?.ok !== true) throw new Error(`entry ${index} is not proven`);
    }
    return [{ name: 'a proof', values: taken, unit: ' ms', wanted: '≤ 100' }];
  },
);
