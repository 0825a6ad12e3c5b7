import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { expectConserved, expectOnce, expectWhole, readBack } from '../support/read-back.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { Receiver } from '../support/receiver.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { postSigned, SECRET } from '../support/signed-events.ts';

const lack = lacksProgram('curl');

/** Posts a file as a person would, and returns the status. */
async function curl(url: string, file: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const all = { 'content-type': 'application/json', ...headers };
  const flags = Object.entries(all).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const args = ['-sS', '--noproxy', '*', '-o', '/dev/null', '-w', '%{http_code}', ...flags];
  const { stdout } = await promisify(execFile)('curl', [...args, '--data-binary', `@${file}`, url]);
  return Number(stdout);
}

/** How the official packages of both families sign. */
const SIGNERS = {
  svix: (id: string, body: string) => {
    const signature = new SvixWebhook(SECRET).sign(id, new Date(), body);
    return { 'svix-id': id, 'svix-timestamp': seconds(), 'svix-signature': signature };
  },
  standardwebhooks: (id: string, body: string) => {
    const signature = new StandardWebhook(SECRET).sign(id, new Date(), body);
    return { 'webhook-id': id, 'webhook-timestamp': seconds(), 'webhook-signature': signature };
  },
};

function seconds(): string {
  return String(Math.floor(Date.now() / 1000));
}

/** Both clocks are read twice, so a signature may be of the second before its header's: then sign once more. */
function signedInOneSecond<T>(sign: () => T): T {
  for (;;) {
    const before = seconds();
    const signed = sign();
    if (seconds() === before) return signed;
  }
}

for (const [name, sign] of Object.entries(SIGNERS)) {
  test.skipIf(lack !== null)(
    `fault 16: signed by the package ${name}, posted by curl: 202, changed 401, again 200, after a restart 200${skipped(lack)}`,
    async () => {
      const folder = await temporaryFolder();
      const config = writeConfig(folder);
      const { id, body } = madeUpEvent(0);
      const headers = signedInOneSecond(() => sign(id, body.toString()));
      const file = join(folder, 'event.json');
      const changed = join(folder, 'changed.json');
      writeFileSync(file, body);
      writeFileSync(changed, body.toString().replace('made', 'Made'));

      const receiver = await Receiver.start(config);
      expect(await curl(receiver.url, changed, headers)).toBe(401);
      expect(await curl(receiver.url, file, headers)).toBe(202);
      expect(await curl(receiver.url, changed, headers)).toBe(401);
      expect(await curl(receiver.url, file, headers)).toBe(200);
      await receiver.kill('SIGTERM');
      const next = await Receiver.start(config);
      expect(await curl(next.url, file, headers)).toBe(200);
      await next.kill('SIGTERM');

      const archive = join(folder, 'archive');
      const found = await readBack(archive);
      expectConserved(found, new Map([[id, body]]));
      expectOnce(found);
      expect(found.get(id)?.[0]?.record.headers).toEqual(headers);
      await expectWhole(archive);
    },
  );
}

test('fault 16: the same event again, at once and after kill -9, is acknowledged and forwarded once', async () => {
  const folder = await temporaryFolder();
  const config = writeConfig(folder);
  const { id, body } = madeUpEvent(0);
  const receiver = await ReceiverProcess.start(config);
  const answers = await Promise.all(Array.from({ length: 10 }, () => postSigned(receiver.url, body, { id })));
  expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
  const repeats = answers.filter(({ status }) => status === 200);
  expect(repeats.map(({ json }) => json)).toEqual(repeats.map(() => ({ status: 'duplicate', id })));
  expect(repeats).toHaveLength(9);
  await receiver.kill('SIGKILL');
  const next = await Receiver.start(config);
  expect(await postSigned(next.url, body, { id })).toMatchObject({ status: 200 });
  await next.drained();
  await next.kill('SIGTERM');
  const found = await readBack(join(folder, 'archive'));
  expectConserved(found, new Map([[id, body]]));
  expectOnce(found);
});

function secretOf(name: string): string {
  return `whsec_${Buffer.from(name.padEnd(24, '.')).toString('base64')}`;
}

test('fault 18: while a secret is being replaced the old one and the new one are both taken', async () => {
  const folder = await temporaryFolder();
  const [old, replacement, foreign] = [secretOf('old'), secretOf('replacement'), secretOf('foreign')];
  const config = writeConfig(folder, {
    signing: { secrets: ['${NEW_SECRET}', '${OLD_SECRET}'] },
  });
  const env = { NEW_SECRET: replacement, OLD_SECRET: old };
  const receiver = await Receiver.start(config, { env });
  const post = async (with_: string): Promise<number> =>
    (await postSigned(receiver.url, madeUpEvent(0).body, { secret: with_ })).status;
  expect(await post(old)).toBe(202);
  expect(await post(replacement)).toBe(202);
  expect(await post(foreign)).toBe(401);
  await receiver.kill('SIGTERM');
  const next = await Receiver.start(writeConfig(folder, { signing: { secrets: ['${NEW_SECRET}'] } }), {
    env,
  });
  expect((await postSigned(next.url, madeUpEvent(0).body, { secret: old })).status).toBe(401);
  expect((await postSigned(next.url, madeUpEvent(0).body, { secret: replacement })).status).toBe(202);
});
