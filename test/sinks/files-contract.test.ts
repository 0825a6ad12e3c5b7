import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'vitest';
import { runContract } from './run-contract.ts';
import { filesSink, records } from './support.ts';

const COMPRESSIONS = ['none', 'gzip', 'zstd'] as const;

describe.each(COMPRESSIONS)('files sink, %s: the sink contract', async (compress) => {
  await runContract(async () => {
    const path = await mkdtemp(join(tmpdir(), 'millrace-'));
    const partitionBy = ['date', 'type', 'team'];
    return {
      sink: filesSink(path, { compress, partitionBy }).sink,
      destinations: ['meals', 'sleep'],
      arrived: async () =>
        (await records(path))
          .sort((a, b) => (a.record.received_at < b.record.received_at ? -1 : 1))
          .map(({ file, record, body }) => {
            const [level = ''] = file.split('/');
            return { id: record.id, destination: level.includes('=') ? null : level, body };
          }),
      outage: { impossible: 'a full disk is tried in files-disk-full.test.ts' },
      dispose: () => rm(path, { recursive: true, force: true }),
    };
  });
});
