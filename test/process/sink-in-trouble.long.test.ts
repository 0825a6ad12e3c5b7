import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SystemStatus } from '../../src/core/operations.ts';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { expectConserved, readBack } from '../support/read-back.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

/** A sink of a user's own; `open` is how it opens. */
function sinkThat(open: string): string {
  return `
export const parseOptions = () => ({});
export const createSink = () => ({
  limits: { batchCount: 10, batchBytes: 1e6, eventBytes: 1e6, inFlight: 1, order: 'none', batchBy: 'mixed' },
  open: async () => { ${open} },
  send: async () => { throw new Error('it is down'); },
  close: async () => {},
});`;
}

const TROUBLES = {
  'says neither yes nor no when it is opened': 'await new Promise(() => {});',
  'cannot be opened': `throw new Error('it is down');`,
  'takes nothing': '',
};

for (const [trouble, open] of Object.entries(TROUBLES)) {
  test(`fault 11: a sink that ${trouble} stops neither the receiver nor the other sinks`, async () => {
    const folder = await temporaryFolder();
    const archive = join(folder, 'archive');
    writeFileSync(join(folder, 'down.mjs'), sinkThat(open));
    const config = writeConfig(folder, {
      sinks: { down: { type: './down.mjs' }, archive: { type: 'files', path: archive } },
      routes: [{ match: '*', to: ['down', 'archive'] }],
    });
    const receiver = await Receiver.start(config);
    const acknowledged = new Map<string, Buffer>();
    for (let n = 0; n < 20; n += 1) {
      const { id, body } = madeUpEvent(n);
      expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
      acknowledged.set(id, body);
    }
    const { journal } = await until('the archive to be done', async () => {
      const status = await receiver.status();
      const cursor = status.journal.cursors.find(({ sink }) => sink === 'archive');
      return cursor?.backlog === 0 ? status : null;
    });
    expect(journal.cursors).toContainEqual(expect.objectContaining({ sink: 'down', backlog: 20 }));
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expectConserved(await readBack(archive), acknowledged);
  });
}

test.each(Object.entries(TROUBLES))(
  'a sink that %s has a backlog of what waits for it, and of nothing that is for others, also when nothing runs',
  async (_, open) => {
    const folder = await temporaryFolder();
    writeFileSync(join(folder, 'down.mjs'), sinkThat(open));
    const config = writeConfig(folder, {
      sinks: { down: { type: './down.mjs' }, archive: { type: 'files', path: join(folder, 'archive') } },
      routes: [
        { match: 'labtest.', to: ['down'] },
        { match: '*', to: ['archive'] },
      ],
    });
    const receiver = await Receiver.start(config);
    for (let n = 0; n < 40; n += 1) {
      const { id, body } = madeUpEvent(n, n % 10 === 3 ? 'labtest.order.created' : 'daily.data.meal.created');
      expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
    }
    const shown = async (): Promise<unknown> => {
      const { stdout } = await millrace(['status', '--json', '--config', config]);
      const { journal } = JSON.parse(stdout) as SystemStatus;
      return Object.fromEntries(journal.cursors.map(({ sink, backlog }) => [sink, backlog]));
    };
    await until('the archive to be done', async () => ((await shown()) as { archive: number }).archive === 0);
    expect(await shown()).toEqual({ archive: 0, down: 4 });
    expect(await receiver.kill('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(await shown()).toEqual({ archive: 0, down: 4 });
  },
);
