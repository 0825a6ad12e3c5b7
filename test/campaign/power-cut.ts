import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Ext4, lacksPowerCut } from '../support/mounts.ts';
import { firstLack } from '../support/requirements.ts';
import type { Campaign } from './campaign.ts';
import { endOf } from './scene.ts';
import { lacksStrace, underStrace } from '../support/strace.ts';

export const powerCut: Campaign = {
  summary: 'the disk is cut off under load: what was not synced is gone',
  breaks: 'the fsync of the receiver does nothing, and says it did (strace)',
  lacks: (broken) => firstLack(lacksPowerCut(), broken ? lacksStrace() : null),
  prepare(scene) {
    const disk = new Ext4(join(scene.folder, 'image'), join(scene.folder, 'disk'), '256M');
    disk.mount();
    scene.onClose(() => disk.unmount());
    scene.journalRoot = disk.path;
    scene.archiveRoot = disk.path;
    scene.sealSome();
    scene.change();
    const program = scene.broken ? { program: underStrace('retval=0') } : {};
    return async () => {
      const answers = scene.upTo(300);
      const at = scene.random();
      if (scene.chance(0.3)) scene.change();
      const receiver = await scene.start(program);
      await scene.underLoad(receiver, answers, async () => {
        await wait(at * 20);
        const moment = disk.cutPower();
        // The disk is gone; the process may not continue as if it were not.
        const exit = scene.broken ? await receiver.kill('SIGKILL') : await endOf(receiver);
        if (exit.code !== 1 && !scene.broken)
          scene.findings.push(`without its disk it ended with ${JSON.stringify(exit)}`);
        await scene.load.over();
        scene.load.unhear(moment);
      });
      scene.faults += 1;
      disk.unmount();
      disk.mount();
      scene.inspect();
    };
  },
};
