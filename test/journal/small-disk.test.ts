import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeEvent } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { lacksMount, mountTmpfs } from '../support/mounts.ts';
import { skipped } from '../support/requirements.ts';
import { batchOf, NOW, openStore } from './support.ts';

const lack = lacksMount();

test.skipIf(lack !== null)(
  `a small disk that is full takes events again once they are settled, however often${skipped(lack)}`,
  async () => {
    const path = join(await temporaryFolder(), 'disk');
    onTestFinished(mountTmpfs(path, '8m'));
    const store = openStore(path, { retention: 3_600_000, dedupWindow: 5000 });
    store.cursors.open('slow');
    let id = 0;
    for (let round = 0; round < 16; round += 1) {
      const now = NOW + round * 1000;
      // Where events are small the ids fill the disk, and where they are not, the segments.
      const body = Buffer.alloc(round % 2 === 0 ? 20 : 300, 0x20);
      const fill = (): number => {
        for (let taken = 0; ; taken += 100) {
          const events = Array.from({ length: 100 }, () =>
            makeEvent({ id: `made-up-${(id += 1)}`, receivedAt: now, body }),
          );
          try {
            store.append(batchOf(events), now);
          } catch (error) {
            expect(error).toMatchObject({ code: 'journal_full' });
            return taken;
          }
        }
      };
      expect(fill()).toBeGreaterThan(1000);
      store.cursors.move([['slow', store.lastSeq]]);
      for (let looks = 0; looks < 50 && store.maintain(now); looks += 1);
    }
    store.close();
  },
);
