import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { readArchive } from '../../../src/archive/read.ts';
import { runContract } from '../../sinks/run-contract.ts';
import { filesSink } from '../../sinks/support.ts';
import { MASTER_TEXT, ringOf } from './support.ts';

interface Arrived {
  readonly id: string;
  readonly destination: string | null;
  readonly body: Buffer;
  readonly at: string;
}

async function opened(path: string, store: string): Promise<Arrived[]> {
  const all: Arrived[] = [];
  for await (const item of readArchive(path, { opener: await ringOf(store) })) {
    if (item.kind === 'problem') throw new Error(`${item.file}:${item.line ?? ''} ${item.reason}`);
    const { file, record, body } = item;
    const [level = ''] = file.split('/');
    const destination = level.includes('=') ? null : level;
    all.push({ id: record.id, destination, body, at: record.received_at });
  }
  return all.sort((a, b) => (a.at < b.at ? -1 : 1));
}

describe('files sink, sealed: the sink contract', async () => {
  await runContract(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-'));
    const [path, store] = [join(folder, 'archive'), join(folder, 'keys')];
    return {
      sink: filesSink(path, { partitionBy: ['date'], encrypt: { store, masterKey: MASTER_TEXT } }).sink,
      destinations: ['meals', 'sleep'],
      arrived: () => opened(path, store),
      outage: { impossible: 'a full disk is tried in disk-full.test.ts' },
      dispose: () => rm(folder, { recursive: true, force: true }),
    };
  });
});
