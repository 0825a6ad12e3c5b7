import { closeSync, mkdtempSync, openSync, rmSync, truncateSync, writeSync } from 'node:fs';
import { generateKeyPairSync } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ENTRY_BYTES, NO_EVENT } from '../../src/core/receipt.ts';
import { leafHash } from '../../src/receipts/hashing.ts';
import { CHECKPOINT, LogReader } from '../../src/receipts/log-files.ts';
import { openLog } from '../../src/receipts/log-source.ts';
import { checkpointText, noteSigner, signNote } from '../../src/receipts/note.ts';
import { parseProof, verifyProof } from '../../src/receipts/proof-text.ts';
import { rootOf, TILE_WIDTH } from '../../src/receipts/tiles.ts';
import { writeDurably } from '../../src/lib/new-file.ts';
import type { Bench } from './bench.ts';
import { median, rangeOf, round } from './report.ts';

const HELP = `Flags:
  --entries N    entries of the log (default 100000000: 3.2 GB, of which the file system keeps the zeros to itself)
  --proofs N     proofs that are asked for (default 50)
  --folder DIR   make the temporary folder here
`;
const WANTED_MS = 100;

/** A log of equal entries, whose tiles are known without hashing them all: to read, it is as any other. */
async function makeLog(folder: string, size: number): Promise<ReturnType<typeof noteSigner>> {
  const entries = join(folder, 'entries');
  closeSync(openSync(entries, 'w'));
  truncateSync(entries, size * ENTRY_BYTES);
  let hash = leafHash(NO_EVENT);
  for (let level = 1; level < 6; level += 1) {
    hash = rootOf(Buffer.concat(Array.from({ length: TILE_WIDTH }, () => hash)));
    const fd = openSync(join(folder, `hashes-${level}`), 'w');
    const row = Buffer.concat(Array.from({ length: TILE_WIDTH }, () => hash));
    for (let left = Math.floor(size / TILE_WIDTH ** level); left > 0; left -= TILE_WIDTH)
      writeSync(fd, row, 0, Math.min(left, TILE_WIDTH) * ENTRY_BYTES);
    closeSync(fd);
  }
  const signer = noteSigner('made-up.example/bench', generateKeyPairSync('ed25519').privateKey);
  const root = await new LogReader(folder).tree(size).root();
  const note = signNote(checkpointText({ origin: signer.name, size, root }), signer);
  await writeDurably(folder, CHECKPOINT, note);
  return signer;
}

/** What a proof takes in a large log. */
export const receipts: Bench = {
  summary: 'proofs from a log of a hundred million entries',
  help: HELP,
  run: async (argv, context) => {
    const text = { type: 'string' } as const;
    const { values } = parseArgs({ args: [...argv], options: { entries: text, proofs: text, folder: text } });
    const size = Number(values.entries ?? 100_000_000);
    const count = Number(values.proofs ?? 50);
    if (!(size > 0) || !(count > 0)) throw new TypeError('--entries and --proofs must be numbers above 0');
    const folder = mkdtempSync(join(values.folder ?? tmpdir(), 'millrace-bench-'));
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    process.once('exit', remove);
    const signer = await makeLog(folder, size);
    context.note(`made a log of ${size} entries`);
    const log = openLog(folder);
    const taken: number[] = [];
    for (let n = 0; n < count; n += 1) {
      const index = Math.floor(Math.random() * size);
      const asked = performance.now();
      const proof = await log.proof(index);
      taken.push(performance.now() - asked);
      const verdict = proof === null ? null : verifyProof(NO_EVENT, parseProof(proof), signer);
      if (verdict?.ok !== true) throw new Error(`entry ${index} is not proven`);
    }
    remove();
    const usual = median(taken);
    return {
      figures: { entries: size, proof_ms: taken.map((ms) => round(ms, 2)) },
      rows: [['a proof', `${round(usual, 2)} (${rangeOf(taken)}) ms`]],
      targets: [
        {
          name: 'a proof, median',
          wanted: `≤ ${WANTED_MS} ms`,
          measured: `${round(usual, 1)} ms`,
          met: usual <= WANTED_MS,
        },
      ],
    };
  },
};
