import { describe, expect, test } from 'vitest';
import { sendCommand } from '../../src/cli/send.ts';
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
});
