import { join } from 'node:path';
import type { Campaign } from './campaign.ts';
import { endOf } from './scene.ts';
import { newestSegment } from '../support/journal-files.ts';
import { lacksStrace, underStrace } from '../support/strace.ts';

export const fsyncError: Campaign = {
  summary: 'EIO on fsync, from a random one on: of the journal alone, or of every file',
  breaks: 'events count as acknowledged a moment before the receiver gets them',
  breaksAnswers: true,
  lacks: lacksStrace,
  prepare(scene) {
    scene.change();
    return async () => {
      const everywhere = scene.chance(0.3);
      // The first few belong to the start, and to the recovery of what the cycle before left.
      const from = scene.broken ? 40 : scene.upTo(80);
      if (scene.chance(0.3)) scene.change();
      // That which is written to; none is begun while it lasts.
      const log = newestSegment(join(scene.journalRoot, 'journal'));
      const receiver = scene.launch({
        program: underStrace(`error=EIO:when=${from}+`, everywhere ? undefined : log),
        // strace counts for each thread.
        env: { UV_THREADPOOL_SIZE: '1' },
      });
      const started = await receiver.listening().then(
        () => true,
        () => false,
      );
      if (started) {
        scene.load.begin(receiver.url);
        await scene.load.over();
      }
      const exit = await endOf(receiver);
      if (exit.code !== 1) scene.findings.push(`after EIO it ended with ${JSON.stringify(exit)}`);
      scene.faults += 1;
      scene.inspect();
    };
  },
};
