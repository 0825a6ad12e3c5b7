import { hash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readArchive } from '../../../src/archive/read.ts';
import { DICTIONARY } from '../../../src/privacy/seal/record.ts';
import { awkwardBodies, contractEvent } from '../../../src/sinks/contract-events.ts';
import { batchOf, writeFiles } from '../../support/archives.ts';
import { OpensSealed } from './open-sealed.ts';
import { MASTER, ringOf, sealedPlace } from './support.ts';

// Written by the version before sealing had threads. The second body has a raw line break.
const EARLIER = {
  bodies: [
    '{"event_type":"daily.data.meal.created","data":{"id":"m-1","name":"Porridge, made up"}}',
    '{"a":\n"é"}',
  ],
  lines: [
    '{"sealed":1,"key":"4c50b74ad9d2a688ca4ac06846b8444d","received_at":"2026-11-21T03:15:02.124Z","nonce":"uJFOl7z/YWfjjIML5iVr5n7MrWCk0nkp","data":"MmIoyvQddnJ1xRASj52mTW4AqBfV72oP6mG+BvLH4EsUmWRyZJNTFw4sTvmsIpmj9VkD/HVcMEAXUHtAADjSwuEzH9d1ou73vHuSSkOI0Pe6YuchBvPRwGBDQ2BG8VRzn/S/4/g="}',
    '{"sealed":1,"key":"2022e1fca2918f77143c49fae9cc97d2","received_at":"2026-11-21T03:15:02.125Z","nonce":"JQ1YmKoF14VtcCKgXALrJOQoq24zkOie","data":"G7l102FAbYZxvqi9KCxtfnQRV/O6tgo0TGrAcqOlQYoD6WZzVQUDhhgQFggY+D8HwtJN1bTME7rne4BkLN/tA4CZGQXqC7QtEpbxkbRQ1dhGWLf5MyeoSIUKrmcztKQsRW2DviHhIs+NTtJLW2Fp8+qiew=="}',
  ],
  keys: 'TUlMTEtFWTLguFPtLLdJop7s2zaSWrzf+n0NWjm99dOVepiqqrBHAgPgmGTZZEd03YU6M9b5LATc7CUf5tS7xACg1KzDzC82RhwZUpYJXIK6btigAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAHY704EBAAAATFC3StnSpojKSsBoRrhETcsLD8OLdzTcM4Cp1wZioSAiPG+YIIFhjCJ1B4OF+3T/AAAAAAAAAAAAAAAAAAAAADpOB8JsOZoyvcDyXT33HxhdiuXf4RjfW+pqFG69DdDMh/KpdidfQOmpKWvL3sUx0QAAAAAAAAAA44PLXAEAAAAgIuH8opGPdxQ8SfrpzJfSywsPw4t3NNwzgKnXBmKhIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAKEWavYV20Cv0OinNXRDrhv9vPyaS0sxVcfmf2qrkmzFe4DwpDi4BVYDT0Ba3F/mjAAAAAAAAAADgvCI2',
};
const DICTIONARY_SHA256 = 'd41a4cf5df1aa5c0c28af4291f49e83fc490f5b8049bfafbfe14175f82a2362f';

describe('the format of a sealed archive', () => {
  it('of an earlier version is read, keys and records', async () => {
    const { path: archive, store } = await sealedPlace();
    for (const path of [archive, store]) mkdirSync(path);
    writeFileSync(join(archive, 'earlier.ndjson'), EARLIER.lines.map((line) => `${line}\n`).join(''));
    writeFileSync(join(store, 'keys.bin'), Buffer.from(EARLIER.keys, 'base64'));
    const bodies: string[] = [];
    for await (const item of readArchive(archive, { opener: await ringOf(store) }))
      bodies.push(item.kind === 'record' ? item.body.toString() : item.reason);
    expect(bodies).toEqual(EARLIER.bodies);
  });

  it('is what it is described to be: another program opens what is written now', async () => {
    expect(hash('sha256', DICTIONARY, 'hex')).toBe(DICTIONARY_SHA256);
    const { path, store, encrypt } = await sealedPlace();
    const bodies = Array.from({ length: 40 }, () => awkwardBodies()).flat();
    const batch = batchOf(...bodies.map((body, n) => contractEvent(n + 1, { body })));
    await writeFiles(path, [batch], { options: { compress: 'none', encrypt } });
    const files = readdirSync(path, { recursive: true, encoding: 'utf8' });
    const file = files.find((name) => name.endsWith('.ndjson')) ?? '';
    const opens = new OpensSealed(store, MASTER);
    const lines = readFileSync(join(path, file), 'utf8').split('\n').slice(0, -1);
    const records = lines.map((line) => opens.open(line) as Record<string, unknown>);
    expect(records.map(({ id }) => id)).toEqual(batch.map(({ event }) => event.id));
    for (const [n, { event, body_base64: verbatim }] of records.entries()) {
      const body = bodies[n] ?? Buffer.alloc(0);
      if (typeof verbatim === 'string') expect(Buffer.from(verbatim, 'base64').equals(body)).toBe(true);
      else expect(event).toEqual(JSON.parse(body.toString()));
    }
  });
});
