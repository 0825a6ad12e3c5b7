import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { leafHash, nodeHash, EMPTY_ROOT } from '../../../src/privacy/receipts/hashing.ts';
import { LogWriter } from '../../../src/privacy/receipts/log-files.ts';
import { LogReader } from '../../../src/privacy/receipts/log-reader.ts';
import {
  openCheckpoint,
  parseVerifier,
  readSigner,
  verifierText,
} from '../../../src/privacy/receipts/note.ts';
import {
  formatProof,
  inclusionProof,
  parseProof,
  verifyProof,
} from '../../../src/privacy/receipts/proof-text.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { skipped } from '../../support/requirements.ts';
import { LACKS_GO, verifyInGo } from './go.ts';

const newKey = () => generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
const signer = readSigner('made-up.example/log', String(newKey()));

/** The definition in RFC 6962, 2.1, word for word; quadratic. */
function rootOf(entries: readonly Buffer[]): Buffer {
  if (entries.length === 0) return EMPTY_ROOT;
  if (entries.length === 1) return leafHash(entries[0] as Buffer);
  const k = 2 ** (Math.ceil(Math.log2(entries.length)) - 1);
  return nodeHash(rootOf(entries.slice(0, k)), rootOf(entries.slice(k)));
}

const entriesOf = (count: number): Buffer[] => Array.from({ length: count }, () => randomBytes(32));

async function proofOf(reader: LogReader, index: number): Promise<string> {
  const checkpoint = reader.checkpoint() ?? '';
  const { size } = openCheckpoint(checkpoint, signer)!;
  const hashes = await inclusionProof(index, reader.tree(size));
  return formatProof({ index, hashes, checkpoint });
}

describe('a log', () => {
  test('of any size, appended and opened again in any steps, has the root that RFC 6962 defines, and proves each entry', async () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 700 }), fc.boolean()), {
      minLength: 1,
      maxLength: 5,
    });
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const folder = await temporaryFolder();
        let log = await LogWriter.open(folder, signer);
        const entries: Buffer[] = [];
        for (const [count, reopens] of all) {
          const more = entriesOf(count);
          entries.push(...more);
          log.append(Buffer.concat(more));
          const head = openCheckpoint(await log.checkpoint(), signer);
          expect(head).toEqual({ origin: signer.name, size: entries.length, root: rootOf(entries) });
          if (!reopens) continue;
          log.close();
          log = await LogWriter.open(folder, signer);
        }
        log.close();
        const reader = new LogReader(folder);
        for (const index of [0, 255, 256, entries.length - 1].filter(
          (at) => at >= 0 && at < entries.length,
        )) {
          const proof = parseProof(await proofOf(reader, index));
          expect(verifyProof(entries[index] as Buffer, proof, signer)).toMatchObject({ ok: true });
          expect(verifyProof(randomBytes(32), proof, signer).ok).toBe(false);
        }
      }),
      { numRuns: 6 },
    );
  });

  test('of more than two levels of tiles', async () => {
    const folder = await temporaryFolder();
    const log = await LogWriter.open(folder, signer);
    const count = 256 * 256 + 300;
    const entries = entriesOf(count);
    log.append(Buffer.concat(entries));
    const head = openCheckpoint(await log.checkpoint(), signer);
    log.close();
    expect(head?.root).toEqual(rootOf(entries));
    const reader = new LogReader(folder);
    for (const index of [0, 65_535, 65_536, count - 1])
      expect(verifyProof(entries[index] as Buffer, parseProof(await proofOf(reader, index)), signer).ok).toBe(
        true,
      );
  });

  test('what a crash left beyond the checkpoint goes; what it speaks of must be there', async () => {
    const folder = await temporaryFolder();
    const log = await LogWriter.open(folder, signer);
    const entries = entriesOf(600);
    log.append(Buffer.concat(entries));
    await log.checkpoint();
    log.append(Buffer.concat(entriesOf(600)));
    log.close();
    appendFileSync(join(folder, 'entries'), 'torn');
    appendFileSync(join(folder, 'hashes-1'), 'torn');
    const again = await LogWriter.open(folder, signer);
    expect([again.size, again.head().root]).toEqual([600, rootOf(entries)]);
    again.append(entriesOf(1)[0] as Buffer);
    again.close();
    const file = join(folder, 'entries');
    const bytes = readFileSync(file);
    bytes[599 * 32] = (bytes[599 * 32] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    await expect(LogWriter.open(folder, signer)).rejects.toThrow('is not the log that its checkpoint is of');
    writeFileSync(file, bytes.subarray(0, 599 * 32));
    await expect(LogWriter.open(folder, signer)).rejects.toThrow('is shorter than the checkpoint says');
  });

  test('a log that was removed before anything in it was signed is not begun again, and continues when it is back', async () => {
    const parent = await temporaryFolder();
    const [folder, aside] = [join(parent, 'log'), join(parent, 'aside')];
    (await LogWriter.open(folder, signer)).close();
    writeFileSync(join(folder, 'log.json'), '{"id":"the-log"}\n');
    const openAgain = () => LogWriter.open(folder, signer, { id: 'the-log', signed: 0 });
    renameSync(folder, aside);
    await expect(openAgain()).rejects.toThrow('Restore it');
    expect(readdirSync(parent)).toEqual(['aside']);
    mkdirSync(folder);
    await expect(openAgain()).rejects.toThrow('Restore it');
    expect(readdirSync(folder)).toEqual([]);
    renameSync(aside, folder);
    const log = await openAgain();
    expect(log.size).toBe(0);
    log.close();
  });

  test('a proof is of its key, its place and its checkpoint alone', async () => {
    const folder = await temporaryFolder();
    const log = await LogWriter.open(folder, signer);
    const entries = entriesOf(20);
    log.append(Buffer.concat(entries));
    await log.checkpoint();
    log.close();
    const text = await proofOf(new LogReader(folder), 7);
    const proof = parseProof(text);
    const entry = entries[7] as Buffer;
    const other = readSigner(signer.name, String(newKey()));
    expect(verifyProof(entry, proof, other)).toMatchObject({ ok: false });
    expect(verifyProof(entry, { ...proof, index: 8 }, signer).ok).toBe(false);
    expect(verifyProof(entry, { ...proof, hashes: proof.hashes.slice(1) }, signer).ok).toBe(false);
    expect(
      verifyProof(entry, { ...proof, checkpoint: proof.checkpoint.replace('\n20\n', '\n21\n') }, signer).ok,
    ).toBe(false);
    expect(parseVerifier(verifierText(signer)).id).toEqual(signer.id);
    for (const bad of [
      '',
      text.slice(0, 40),
      text.replace('@v1', '@v2'),
      text.replace('index 7', 'index 07'),
    ])
      expect(() => parseProof(bad)).toThrow(RangeError);
  });

  test.skipIf(LACKS_GO)(`is verified by Go's own packages${skipped(LACKS_GO)}`, async () => {
    const folder = await temporaryFolder();
    const log = await LogWriter.open(folder, signer);
    const entries = entriesOf(1000);
    for (let at = 0; at < entries.length; at += 100) {
      log.append(Buffer.concat(entries.slice(at, at + 100)));
      await log.checkpoint();
    }
    log.close();
    const reader = new LogReader(folder);
    const key = verifierText(signer);
    const claims = [];
    for (const index of [0, 1, 255, 256, 511, 767, 768, 998, 999])
      claims.push({ key, entry: entries[index] as Buffer, proof: await proofOf(reader, index) });
    const said = claims.map(({ proof }) => `ok 1000 ${parseProof(proof).index}`);
    expect(verifyInGo(claims)).toEqual(said);
    const [first, ...rest] = claims;
    const wrong = verifyInGo([{ ...first!, entry: entries[1] as Buffer }, ...rest]);
    expect(wrong[0]).not.toContain('ok');
    expect(wrong.slice(1)).toEqual(said.slice(1));
  });
});
