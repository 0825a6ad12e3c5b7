import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ErasureResult } from '../../src/core/erasure.ts';
import { userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { postSigned } from '../support/signed-events.ts';

const GONE = userId(7);
const STAYS = userId(8);
const TEAM = userId(101);
const OTHER_TEAM = userId(102);

async function post(url: string, id: string, type: string, team: string, user: string): Promise<void> {
  const event = { event_type: type, team_id: team, user_id: user, client_user_id: `made-up-${id}` };
  const body = Buffer.from(JSON.stringify(event));
  expect((await postSigned(url, body, { id })).json).toMatchObject({ status: 'accepted' });
}

test.each([['while a receiver runs'], ['without a receiver']])(
  'an erasure ends with a receipt although an event type and a team are called after the user, %s',
  async (when) => {
    const folder = await temporaryFolder();
    const archive = join(folder, 'archive');
    const config = writeConfig(folder, {
      sinks: { archive: { type: 'files', path: archive, partitionBy: ['type', 'team'] } },
    });
    const receiver = await ReceiverProcess.start(config);
    await post(receiver.url, 'a', `made.up.${GONE}`, TEAM, STAYS);
    await post(receiver.url, 'b', 'made.up', GONE, STAYS);
    await post(receiver.url, 'c', `made.up.alone.${GONE}`, GONE, GONE);
    await receiver.drained();
    expect((await millrace(['flush', '--config', config])).code).toBe(0);
    // Of these the files are unfinished.
    await post(receiver.url, 'd', `made.up.${GONE}`, TEAM, STAYS);
    await post(receiver.url, 'e', `made.up.alone.${GONE}`, OTHER_TEAM, GONE);
    await receiver.drained();
    if (when === 'without a receiver') await receiver.kill('SIGKILL');

    const run = await millrace(['erase', GONE, '--now', '--json', '--config', config]);
    const { receipts, left } = JSON.parse(run.stdout) as ErasureResult;
    expect([run.code, receipts.length, left.filter(({ requests }) => requests.length > 0)]).toEqual([
      3,
      1,
      [],
    ]);
    const named = receipts[0]?.not_searched ?? [];
    expect(named).toContain('_manifest.jsonl');
    expect(named.some((item) => /^type=made\.up\.\*\/team=[^*/]+\/.*\.gz$/.test(item))).toBe(true);
    expect(named.some((item) => /^type=made\.up\/team=\*\/.*\.gz$/.test(item))).toBe(true);
    expect(receipts[0]?.records_removed).toBe(4);
    expect(run.stdout + run.stderr).not.toContain(GONE);
    const again = await millrace(['erase', '--run', '--config', config]);
    expect([again.code, again.stderr]).toEqual([0, 'nothing is due\n']);
    // What held nobody else is gone, and its folders with it.
    const names = readdirSync(archive, { recursive: true, encoding: 'utf8' });
    expect(names.filter((name) => name.includes('alone'))).toEqual([]);
  },
);
