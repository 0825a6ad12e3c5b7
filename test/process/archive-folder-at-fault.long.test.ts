import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import type { SinkStatus } from '../../src/core/operations.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { lacksMount } from '../support/mounts.ts';
import { readBack } from '../support/read-back.ts';
import { Receiver } from '../support/receiver.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

/** A receiver with an archive, and what it has acknowledged. */
class Scene {
  readonly archive: string;
  readonly config: string;
  readonly acknowledged = new Map<string, Buffer>();
  receiver: Receiver;

  private constructor(folder: string, config: string, receiver: Receiver) {
    this.archive = join(folder, 'archive');
    this.config = config;
    this.receiver = receiver;
  }

  static async begin(rotate: object = {}): Promise<Scene> {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, {
      sinks: { archive: { type: 'files', path: join(folder, 'archive'), rotate } },
      delivery: { retryInitial: '50ms', retryMax: '500ms' },
    });
    return new Scene(folder, config, await Receiver.start(config));
  }

  async restart(): Promise<void> {
    await this.receiver.kill('SIGTERM');
    this.receiver = await Receiver.start(this.config);
  }

  /** Sends made-up events; settles when they are acknowledged. */
  async send(from: number, count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let n = from; n < from + count; n += 1) {
      const { id, body } = madeUpEvent(n);
      const { status } = await postSigned(this.receiver.url, body, { id });
      if (status !== 202) throw new Error(`answered ${status}`);
      this.acknowledged.set(id, body);
      ids.push(id);
    }
    return ids;
  }

  async sink(): Promise<SinkStatus> {
    const { sinks } = await this.receiver.status();
    const sink = sinks.find(({ sink: name }) => name === 'archive');
    if (sink === undefined) throw new Error('no archive');
    return sink;
  }

  inTrouble(code: string): Promise<SinkStatus> {
    return until(`the trouble ${code}`, async () => {
      const sink = await this.sink();
      return sink.troubles.some((trouble) => trouble.code === code) ? sink : null;
    });
  }

  parts(): string[] {
    return globSync('_open/**/*.part', { cwd: this.archive }).map((part) => join(this.archive, part));
  }

  async letters(): Promise<{ id: string; code: string }[]> {
    const { stdout } = await this.run('dead-letters', 'list', '--limit', '1000', '--json');
    return stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { id: string; code: string });
  }

  async run(...args: string[]): Promise<{ stdout: string; code: number | null }> {
    return await millrace([...args, '--config', this.config]);
  }

  /** What every place that is asked about the sink's health says. */
  async everywhere(): Promise<{ status: string; ready: string; metrics: string }> {
    const textAt = async (path: string): Promise<string> =>
      (await request(`${this.receiver.adminUrl}${path}`)).body.text();
    return {
      status: (await this.run('status')).stdout,
      ready: await textAt('/readyz?verbose'),
      metrics: await textAt('/metrics'),
    };
  }

  /** Ids in the archive after an orderly end. */
  async end(): Promise<Set<string>> {
    const { code } = await this.receiver.kill('SIGTERM');
    if (code !== 0) throw new Error(`ended with ${code}`);
    return new Set((await readBack(this.archive)).keys());
  }
}

const HARMS: Readonly<Record<string, (scene: Scene) => void>> = {
  'an open part gone': (scene) => {
    for (const part of scene.parts()) unlinkSync(part);
  },
  'an open part replaced': (scene) => {
    for (const part of scene.parts()) {
      unlinkSync(part);
      writeFileSync(part, 'x'.repeat(1_000_000));
    }
  },
  'an open part cut': (scene) => {
    for (const part of scene.parts()) writeFileSync(part, '');
  },
  'the folder of open parts removed': (scene) => rmSync(join(scene.archive, '_open'), { recursive: true }),
  'an archive folder removed': (scene) => rmSync(scene.archive, { recursive: true }),
  'an archive folder replaced': (scene) => {
    renameSync(scene.archive, `${scene.archive}.old`);
    mkdirSync(scene.archive);
  },
};

for (const [what, harm] of Object.entries(HARMS)) {
  for (const traffic of what.endsWith('gone') || what.endsWith('removed') ? [true, false] : [true]) {
    test(`${what}, ${traffic ? 'while events come' : 'while nothing comes'}: said everywhere, nothing counted as delivered that is not there`, async () => {
      const scene = await Scene.begin();
      const before = await scene.send(0, 30);
      await scene.receiver.drained();
      harm(scene);
      if (traffic) await scene.send(30, 10);
      const sink = await scene.inTrouble('file_lost');
      expect(sink.troubles.find(({ code }) => code === 'file_lost')).toMatchObject({ lost: before.length });
      const letters = await scene.letters();
      expect(letters.map(({ id }) => id).toSorted()).toEqual(before.toSorted());
      expect(new Set(letters.map(({ code }) => code))).toEqual(new Set(['file_lost']));

      const { status, ready, metrics } = await scene.everywhere();
      expect(status).toMatch(/archive +running, in trouble/);
      expect(status).toMatch(/file_lost since 20\d\d-/);
      expect(status).toContain('30 delivered records, received from 20');
      expect(status).toContain('millrace dead-letters retry --sink archive');
      expect(JSON.parse(ready)).toMatchObject({
        checks: expect.arrayContaining([
          expect.objectContaining({
            name: 'sink archive',
            ok: false,
            troubles: expect.arrayContaining([expect.objectContaining({ code: 'file_lost' })]),
          }),
        ]),
      });
      expect(metrics).toMatch(/^millrace_sink_lost_records\{sink="archive"\} 30$/m);
      expect(metrics).toMatch(
        /^millrace_sink_trouble_since_timestamp_seconds\{.*code="file_lost".*\} 1\d{9}/m,
      );

      expect((await scene.run('dead-letters', 'retry', '--sink', 'archive', '--all')).code).toBe(0);
      await scene.send(40, 5);
      await scene.receiver.drained();
      expect(await scene.end()).toEqual(new Set(scene.acknowledged.keys()));
    });
  }
}

test('an archive folder removed is made again without a restart, and says so', async () => {
  const scene = await Scene.begin();
  await scene.receiver.drained();
  rmSync(scene.archive, { recursive: true });
  const sink = await scene.inTrouble('folder_replaced');
  expect(sink.troubles[0]?.detail).toContain('millrace replay journal --to archive');
  expect(globSync('_open/*/lock', { cwd: scene.archive })).toHaveLength(1);
  await scene.send(0, 10);
  await scene.receiver.drained();
  expect(await scene.end()).toEqual(new Set(scene.acknowledged.keys()));
});

const noMount = lacksMount();

test.skipIf(noMount !== null)(
  `an archive folder made read-only: said everywhere until it can be written again, nothing lost${skipped(noMount)}`,
  async () => {
    const scene = await Scene.begin({ every: '1s' });
    await scene.send(0, 10);
    await scene.receiver.drained();
    execFileSync('mount', ['--bind', scene.archive, scene.archive]);
    let mounted = true;
    const unmount = (): void => {
      if (mounted) execFileSync('umount', ['--lazy', scene.archive]);
      mounted = false;
    };
    onTestFinished(unmount);
    execFileSync('mount', ['-o', 'remount,bind,ro', scene.archive]);
    const [trouble] = (await scene.inTrouble('folder_unusable')).troubles;
    expect(trouble?.detail).toContain('read-only file system');
    const { status, metrics } = await scene.everywhere();
    expect(status).toContain('folder_unusable since');
    expect(metrics).toMatch(/code="folder_unusable"/);
    await scene.send(10, 10);
    await until('the sink to be paused', async () => (await scene.sink()).lastError?.includes('EROFS'));
    // A restart meanwhile ends nothing but the sink's work.
    await scene.restart();
    await until('the sink to be tried', async () => (await scene.sink()).lastError?.includes('EROFS'));
    await scene.send(20, 10);
    unmount();
    await until('the trouble to be over', async () => {
      const { troubles, mode } = await scene.sink();
      return mode === 'running' && troubles.length === 0;
    });
    await scene.receiver.drained();
    expect(await scene.end()).toEqual(new Set(scene.acknowledged.keys()));
    expect(await scene.letters()).toEqual([]);
  },
);
