import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ServeProcess } from '../support/serve-process.ts';
import type { Campaign } from './campaign.ts';
import type { Scene } from './scene.ts';

/** Milliseconds between two starts, at most. */
const APART = 700;

export const twoProcesses: Campaign = {
  summary: 'a second receiver on the journal: beside one at work, started with it, or while it is killed',
  breaks: 'the second gets a journal of its own, so that nothing stops it',
  lacks: () => null,
  prepare(scene) {
    scene.change();
    return async () => {
      const kind = scene.broken ? 0 : scene.random();
      const answers = scene.upTo(200);
      const apart = scene.random();
      if (scene.chance(0.3)) scene.change();
      if (kind < 0.4) await beside(scene, answers);
      else if (kind < 0.7) await together(scene, answers, apart);
      else await whileKilled(scene, answers, apart);
      scene.faults += 1;
      scene.inspect();
    };
  },
};

/** The second ends at once and names the first, who continues. */
async function beside(scene: Scene, answers: number): Promise<void> {
  const first = await scene.start();
  await scene.underLoad(first, answers, async () => {
    const second = other(scene);
    if (await survives(second)) scene.findings.push(`a second receiver runs beside process ${first.pid}`);
    else if (!second.stderr.includes(`process ${first.pid}`))
      scene.findings.push(`the second does not name process ${first.pid}: ${second.stderr}`);
    await second.kill('SIGKILL');
    await scene.load.answers(20);
  });
  await first.kill('SIGKILL');
}

/** One of them gets the journal. */
async function together(scene: Scene, answers: number, apart: number): Promise<void> {
  const one = scene.launch();
  await wait((apart * APART) / 10);
  const two = other(scene);
  const alive = await Promise.all([survives(one), survives(two)]);
  if (alive[0] === alive[1])
    scene.findings.push(`${alive[0] ? 'both' : 'neither'} got the journal: ${one.stderr}\n${two.stderr}`);
  const owner = alive[0] ? one : two;
  if (alive[0] || alive[1]) await scene.underLoad(owner, answers, () => Promise.resolve());
  await Promise.all([one.kill('SIGKILL'), two.kill('SIGKILL')]);
}

/** The lock of the killed is no obstacle, whenever the second looks for it. */
async function whileKilled(scene: Scene, answers: number, apart: number): Promise<void> {
  const first = await scene.start();
  let second: ServeProcess | null = null;
  await scene.underLoad(first, answers, async () => {
    second = other(scene);
    await wait(apart * APART);
    await first.kill('SIGKILL');
  });
  if (second !== null) await survives(second);
  const owner = scene.running ?? (await scene.start());
  await scene.underLoad(owner, answers, () => Promise.resolve());
  await owner.kill('SIGKILL');
}

function other(scene: Scene): ServeProcess {
  const config = scene.broken
    ? scene.configBelow(join(scene.folder, 'elsewhere'), join(scene.folder, 'elsewhere'))
    : scene.config;
  return scene.follow(new ServeProcess(config, scene.withEnvironment()));
}

/** Whether it comes to listen. */
async function survives(receiver: ServeProcess): Promise<boolean> {
  return receiver.listening().then(
    () => true,
    () => false,
  );
}
