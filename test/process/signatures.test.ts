import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { Place } from '../support/place.ts';
import { expectConserved, expectOnce, expectWhole } from '../support/read-back.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { SECRET } from '../support/signed-events.ts';

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
      const place = await Place.make();
      const { id, body } = madeUpEvent(0);
      const headers = signedInOneSecond(() => sign(id, body.toString()));
      const [file, changed] = [place.at('event.json'), place.at('changed.json')];
      writeFileSync(file, body);
      writeFileSync(changed, body.toString().replace('made', 'Made'));

      const receiver = await place.start();
      expect(await curl(receiver.url, changed, headers)).toBe(401);
      expect(await curl(receiver.url, file, headers)).toBe(202);
      expect(await curl(receiver.url, changed, headers)).toBe(401);
      expect(await curl(receiver.url, file, headers)).toBe(200);
      await receiver.stop();
      const next = await place.start();
      expect(await curl(next.url, file, headers)).toBe(200);
      await next.stop();

      const found = await place.archived();
      expectConserved(found, new Map([[id, body]]));
      expectOnce(found);
      expect(found.get(id)?.[0]?.record.headers).toEqual(headers);
      await expectWhole(place.at('archive'));
    },
  );
}
