import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sendCommand } from '../../src/cli/send.ts';
import { TEAM, USER } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { SECRET } from '../support/signed-events.ts';
import { run } from './run.ts';

const ENV = { MILLRACE_SECRET: `whsec_${Buffer.alloc(24, 7).toString('base64')}` };

describe('send', () => {
  test('says which option is wrong, before anything is sent', async () => {
    const cases: [string[], RegExp][] = [
      [['--url', 'ftp://127.0.0.1/'], /--url ftp:\/\/127\.0\.0\.1\/: must be a URL/],
      [['--url', 'nowhere'], /--url nowhere: must be a URL/],
      [['--id', 'a\nb'], /--id must be/],
      [['--id', 'ä'], /--id must be/],
      [['--file', '/no/such/file'], /--file \/no\/such\/file: ENOENT/],
      [['--count', '0'], /--count 0: must be/],
    ];
    for (const [args, message] of cases) {
      await expect(run(sendCommand, args, ENV)).rejects.toMatchObject({
        code: 'usage',
        message: expect.stringMatching(message),
      });
    }
  });

  test('names a receiver that is not there without the password in its address', async () => {
    const failed = run(
      sendCommand,
      ['--retry', '0s', '--url', 'http://made-up:password@127.0.0.1:1/webhooks?token=x'],
      ENV,
    );
    await expect(failed).rejects.toMatchObject({
      code: 'receiver_unreachable',
      detail: expect.stringMatching(/^http:\/\/127\.0\.0\.1:1\/webhooks: /),
    });
  });

  test('what is quarantined was not accepted, although it is answered with a 2xx; a repetition was', async () => {
    const folder = await temporaryFolder();
    const receiver = await Receiver.start(writeConfig(folder));
    const send = async (body: object): Promise<[number | null, string]> => {
      const file = join(folder, 'event.json');
      writeFileSync(file, JSON.stringify(body));
      const args = ['send', '--file', file, '--id', 'one', '--url', receiver.url];
      const { code, stdout, stderr } = await millrace(args, { env: { MILLRACE_SECRET: SECRET } });
      expect(JSON.parse(stdout)).toMatchObject({ http: expect.toSatisfy((status) => status < 300) });
      return [code, stderr];
    };
    const event = { event_type: 'labtest.order.created', team_id: TEAM, user_id: USER, client_user_id: 'c' };
    expect(await send(event)).toEqual([0, '']);
    expect(await send(event)).toEqual([0, '']);
    expect(await send({ ...event, note: 'other bytes' })).toEqual([
      1,
      expect.stringMatching(/^1 of 1 were quarantined.*quarantine list/m),
    ]);
  });
});
