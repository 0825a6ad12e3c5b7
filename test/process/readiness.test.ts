import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

const GATED = fileURLToPath(new URL('./gated-sink.ts', import.meta.url));
const PADDING = Buffer.alloc(200_000, 0x20);

/** A receiver whose only sink takes nothing until there is a file `gate`. */
async function gated(journal: object) {
  const folder = await temporaryFolder();
  const config = writeConfig(folder, { journal, sinks: { gated: { type: GATED, folder } } });
  const receiver = await Receiver.start(config);
  let n = 0;
  const post = async (): Promise<unknown> => {
    const { id, body } = madeUpEvent((n += 1));
    const { status, json } = await postSigned(receiver.url, Buffer.concat([body, PADDING]), { id });
    return status === 202 ? null : json['code'];
  };
  const ready = async (): Promise<{
    status: number;
    checks: { name: string; ok: boolean; state: string }[];
  }> => {
    const answer = await fetch(new URL('/readyz?verbose', receiver.adminUrl));
    const { checks } = (await answer.json()) as Awaited<ReturnType<typeof ready>>;
    return { status: answer.status, checks };
  };
  return { config, post, ready, open: () => writeFileSync(join(folder, 'gate'), '') };
}

test('a receiver with a full journal is not ready, and is again once there is room, asked or not', async () => {
  const { config, post, ready, open } = await gated({ maxBytes: '4MiB' });
  expect((await ready()).status).toBe(200);
  expect(await until('a refusal', post)).toBe('journal_full');
  const { status, checks } = await ready();
  expect(status).toBe(503);
  expect(checks).toContainEqual(expect.objectContaining({ name: 'journal', ok: false, state: 'full' }));
  const said = await millrace(['status', '--config', config]);
  expect(said.stdout).toMatch(/journal_full since .+\n.+ holds \d+ of at most 4194304 bytes/);
  open();
  await until('readiness', async () => (await ready()).status === 200);
  expect(await post()).toBeNull();
});

test('a receiver whose backlog is above its mark is not ready until it is below', async () => {
  const { post, ready, open } = await gated({ maxBacklog: 3 });
  expect(await until('a refusal', post)).toBe('backlog_full');
  const { status, checks } = await ready();
  expect(status).toBe(503);
  expect(checks).toContainEqual({ name: 'receiver', ok: false, required: true, state: 'backlog_full' });
  open();
  await until('readiness', async () => (await ready()).status === 200);
});
