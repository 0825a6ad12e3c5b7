import { setTimeout as wait } from 'node:timers/promises';
import type { Campaign } from './campaign.ts';

/** Longest time into a start for a kill amid it, milliseconds. */
const START = 700;

export const kill: Campaign = {
  summary: 'kill -9 under load, amid starts and amid reloads, with other routes and sinks between',
  breaks: 'events count as acknowledged a moment before the receiver gets them',
  breaksAnswers: true,
  lacks: () => null,
  prepare(scene) {
    scene.sealSome();
    if (scene.chance(0.2)) scene.plain();
    else scene.change();
    return async () => {
      const amidStart = scene.chance(0.2);
      const at = scene.random();
      const answers = scene.upTo(300);
      const reload = scene.random();
      if (scene.chance(0.3)) scene.change();

      if (amidStart && !scene.broken) {
        // The moment is the fault; nothing waits for it to be over.
        const receiver = scene.launch();
        await wait(at * START);
        await receiver.kill('SIGKILL');
      } else {
        const receiver = await scene.start();
        await scene.underLoad(receiver, answers, async () => {
          if (reload < 0.2) {
            await scene.reload(receiver);
            await scene.load.answers(Math.ceil(at * 100));
          } else if (reload < 0.4) scene.hangUp(receiver);
          await wait(at * 20);
          await receiver.kill('SIGKILL');
        });
      }
      scene.faults += 1;
      scene.inspect();
    };
  },
};
