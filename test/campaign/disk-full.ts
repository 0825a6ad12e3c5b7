import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fillDisk, lacksMount, mountTmpfs } from '../support/mounts.ts';
import type { Campaign } from './campaign.ts';

export const diskFull: Campaign = {
  summary:
    'the disk of the journal, of the archives, or of both, is full for a while; kill -9 on it now and then',
  breaks: 'events count as acknowledged a moment before the receiver gets them',
  breaksAnswers: true,
  lacks: lacksMount,
  prepare(scene) {
    const path = join(scene.folder, 'small');
    scene.onClose(mountTmpfs(path, '16m'));
    const filler = join(path, 'filler');
    const which = scene.broken ? 0 : scene.random();
    if (which < 0.7) scene.journalRoot = path;
    if (which > 0.4) scene.archiveRoot = path;
    scene.change();
    return async () => {
      const before = scene.upTo(200);
      const during = scene.upTo(100);
      const killed = scene.chance(0.3);
      const receiver = scene.running ?? (await scene.start());
      await scene.underLoad(receiver, before, async () => {
        fillDisk(filler);
        scene.faults += 1;
        // Without a journal nothing is accepted; without an archive what is accepted waits.
        if (which < 0.7) await scene.load.refusals(during);
        else await scene.load.answers(during);
        if (killed) await receiver.kill('SIGKILL');
      });
      if (killed) {
        scene.faults += 1;
        // It may start, or say that it cannot; it has to work again once there is space.
        const starved = scene.launch();
        await Promise.race([starved.listening().catch(() => undefined), starved.exited]);
        await starved.kill('SIGKILL');
      }
      rmSync(filler);
      const next = scene.running ?? (await scene.start());
      await scene.underLoad(next, before, () => Promise.resolve());
    };
  },
};
