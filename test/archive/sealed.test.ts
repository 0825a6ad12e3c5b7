import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { listArchive } from '../../src/archive/places.ts';
import { verifyArchive } from '../../src/archive/verify.ts';
import { KeyStore } from '../../src/seal/key-store.ts';
import { newMasterKey, parseMasterKey } from '../../src/seal/master-key.ts';
import { createVerifier } from '../../src/verify/registry.ts';
import { deliver, filesSink, signal, tempFolder } from '../sinks/support.ts';
import { differences } from './support.ts';

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

it('a sealed archive is proven by its manifest alone, and with its keys record by record', async () => {
  const path = tempFolder();
  const store = tempFolder();
  const masterKey = newMasterKey();
  const { sink } = filesSink(path, { compress: 'none', encrypt: { store, masterKey } });
  await sink.open();
  await sink.send(deliver(1, 4, { headers: {} }), signal);
  await sink.send(deliver(5, 1), signal);
  await sink.close(signal);
  const verifier = createVerifier({ scheme: 'standard-webhooks', secrets: [SECRET], tolerance: Infinity });
  expect(await verifyArchive(path, { verifier })).toMatchObject({
    records: 5,
    differences: [],
    sealed: { opened: 0, closed: 5, erased: 0 },
    signatures: { verified: 0, unmatched: 0, unsigned: 0 },
  });
  const opener = await KeyStore.read(store, parseMasterKey(masterKey));
  const opened = await verifyArchive(path, { opener, verifier });
  expect(opened).toMatchObject({
    records: 5,
    sealed: { opened: 5, closed: 0, erased: 0 },
    signatures: { unmatched: 1, unsigned: 4 },
  });
  const [file = ''] = (await listArchive(path)).files;
  expect(opened.differences.map(({ code, line }) => `${code}:${line}`)).toEqual(['signature_unmatched:5']);

  const text = readFileSync(join(path, file), 'utf8');
  const at = text.indexOf('"data":"') + 20;
  writeFileSync(join(path, file), text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1));
  expect(await differences(path, { opener })).toEqual([`record_invalid ${file}:1`, `file_changed ${file}`]);
});
