import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { verifyArchive } from '../../../src/archive/verify.ts';
import { KeyStore } from '../../../src/privacy/seal/key-store.ts';
import { deliver, filesSink, signal } from '../../sinks/support.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { lacksMount, mountTmpfs } from '../../support/mounts.ts';
import { skipped } from '../../support/requirements.ts';
import { keysOf, MASTER, MASTER_TEXT, owner, ringOf } from './support.ts';

const lack = lacksMount();

test.skipIf(lack !== null)(
  `no room for keys: nothing is sealed without one on disk, and it continues once there is room${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const store = join(folder, 'keys');
    onTestFinished(mountTmpfs(store, '256k'));
    const { sink } = filesSink(join(folder, 'archive'), { encrypt: { store, masterKey: MASTER_TEXT } });
    await sink.open();
    await sink.send(deliver(1, 3), signal);
    const ballast = join(store, 'ballast');
    expect(() => {
      for (let n = 0; ; n += 1) writeFileSync(`${ballast}-${n}`, Buffer.alloc(4096));
    }).toThrow('ENOSPC');
    // Beyond the page that the first keys lie in.
    const many = Array.from({ length: 60 }, (_, n) => deliver(100 + n, 1, { user: `another-${n}` })).flat();
    for (const result of await sink.send(many, signal)) {
      expect(result).toMatchObject({
        status: 'retry',
        sink: true,
        reason: expect.stringContaining('Key store'),
      });
    }
    // Those that are known continue.
    expect(await sink.send(deliver(4, 1, { user: 'user-1' }), signal)).toEqual([{ status: 'delivered' }]);
    for (let n = 0; n < 20; n += 1) rmSync(`${ballast}-${n}`);
    for (const result of await sink.send(many, signal)) expect(result).toEqual({ status: 'delivered' });
    await sink.close(signal);
    expect(await verifyArchive(join(folder, 'archive'))).toMatchObject({ records: 64, differences: [] });
    expect((await ringOf(store)).counts).toEqual({ active: 63, destroyed: 0, damaged: 0 });
    const again = await KeyStore.open(store, MASTER);
    expect(await keysOf(again, [owner(1)])).toHaveLength(1);
    await again.close();
  },
);
