import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../sinks/http-support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { lacksMount, mountTmpfs } from '../support/mounts.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const lack = lacksMount();
/** About 4 KiB an event: a page of the database holds one, which makes a dead letter twice its event. */
const PADDING = Buffer.alloc(3000, 0x20);

test.skipIf(lack !== null)(
  `fault 52: a full disk whose events are all refused, and then taken, recovers by itself${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'small');
    onTestFinished(mountTmpfs(path, '8m'));
    const endpoint = await startEndpoint();
    const config = writeConfig(folder, {
      journal: { path: join(path, 'journal') },
      delivery: { retryInitial: '20ms', retryMax: '100ms' },
      sinks: { far: { type: 'http', url: endpoint.url('/'), sign: 'none', privateNetworks: ['127.0.0.1'] } },
      routes: [{ match: '*', to: ['far'] }],
    });
    const receiver = await ReceiverProcess.start(config);
    const accepted: string[] = [];
    const post = async (): Promise<number> => {
      const { id, body } = madeUpEvent(accepted.length);
      const { status } = await postSigned(receiver.url, Buffer.concat([body, PADDING]), { id });
      if (status === 202) accepted.push(id);
      return status;
    };
    /** With a sink that takes nothing. @returns how many events that takes */
    const fill = async (): Promise<number> => {
      endpoint.reply = () => 503;
      const before = accepted.length;
      while ((await post()) === 202) expect(accepted.length).toBeLessThan(20_000);
      return accepted.length - before;
    };
    const deadLetters = async (): Promise<string[]> => {
      const { stdout } = await millrace([
        'dead-letters',
        'list',
        '--config',
        config,
        '--limit',
        '99999',
        '--json',
      ]);
      return stdout
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { id: string }).id]));
    };

    const room = await fill();
    endpoint.reply = () => 422;
    await until('no more room for dead letters', async () =>
      (await receiver.status()).sinks[0]?.lastError?.includes('Journal is full'),
    );
    // What is looked at is noted in the audit log first.
    const [first] = await until('a dead letter', async () => {
      const found = await deadLetters();
      return found.length > 0 ? found : null;
    });
    const shown = await millrace(['dead-letters', 'show', '1', '--config', config]);
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining(String(first)) as string });

    endpoint.reply = () => 204;
    await receiver.drained();
    await until('space, and a 2xx', async () => (await post()) === 202);
    await receiver.drained();
    const dead = await deadLetters();
    expect(dead.length).toBeGreaterThan(20);
    expect([...new Set([...endpoint.ids(), ...dead])].toSorted()).toEqual(accepted.toSorted());

    // What a person drops makes room for events, and not for dead letters only.
    const dropped = await millrace(['dead-letters', 'drop', '--all', '--config', config]);
    expect(dropped).toMatchObject({ code: 0, stdout: `dropped ${dead.length}\n` });
    expect(await fill()).toBeGreaterThan(0.9 * room);
    endpoint.reply = () => 204;
    await receiver.drained();
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expect([...new Set([...endpoint.ids(), ...dead])].toSorted()).toEqual(accepted.toSorted());
  },
);

test.skipIf(lack !== null)(
  `fault 52: a sink can be given up on a full disk, as its dead letters are dropped${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'small');
    onTestFinished(mountTmpfs(path, '8m'));
    const endpoint = await startEndpoint();
    endpoint.reply = () => 503;
    const journal = { path: join(path, 'journal') };
    const far = { type: 'http', url: endpoint.url('/'), sign: 'none', privateNetworks: ['127.0.0.1'] };
    const config = writeConfig(folder, { journal, sinks: { far }, routes: [{ match: '*', to: ['far'] }] });
    const receiver = await ReceiverProcess.start(config);
    let accepted = 0;
    for (let next = 0, isFull = false; !isFull;) {
      const answers = Array.from({ length: 16 }, () => {
        const { id, body } = madeUpEvent((next += 1));
        return postSigned(receiver.url, body, { id });
      });
      for (const { status } of await Promise.all(answers))
        if (status === 202) accepted += 1;
        else isFull = true;
    }
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    writeConfig(folder, { journal });
    // Dead letters of all of them would be more than the disk holds: a person drops some in between.
    let letters = 0;
    for (let isDone = false; !isDone;) {
      const { code, stderr } = await millrace(['sink', 'drop', 'far', '--config', config]);
      isDone = code === 0;
      if (!isDone) expect(stderr).toMatch(/Journal is full: .* make room on it, or drop dead letters/);
      const { stdout } = await millrace(['dead-letters', 'drop', '--all', '--config', config]);
      const count = Number(/^dropped (\d+)$/m.exec(stdout)?.[1]);
      expect(count).toBeGreaterThan(0);
      letters += count;
    }
    expect(letters).toBe(accepted);
  },
);
