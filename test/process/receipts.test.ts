import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { LACKS_GO, verifyInGo } from '../receipts/go.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';

vi.setConfig({ testTimeout: 120_000 });

const ORIGIN = 'made-up.example/events';

/** What a sender keeps of a delivery. */
interface Kept {
  readonly id: string;
  readonly body: Buffer;
  readonly leaf: number;
  readonly salt: Buffer;
  readonly received: number;
}

async function configured(more: Readonly<Record<string, object>> = {}) {
  const folder = await temporaryFolder();
  const receipts = { path: join(folder, 'receipts'), origin: ORIGIN, interval: '50ms' };
  return { folder, config: writeConfig(folder, { receipts, ...more }) };
}

async function send(receiver: ReceiverProcess, numbers: readonly number[]): Promise<Kept[]> {
  const kept = await Promise.all(
    numbers.map(async (n) => {
      const { id, body } = madeUpEvent(n, 'daily.data.meal.created');
      const { status, headers } = await postSigned(receiver.url, body, { id });
      const text = String(headers['millrace-receipt'] ?? '');
      const [, origin, leaf, salt = '', received] =
        /^log="(.+)", leaf=(\d+), salt="([\w-]{22})", received=(\d+)$/.exec(text) ?? [];
      expect([status, origin]).toEqual([202, ORIGIN]);
      return {
        id,
        body,
        leaf: Number(leaf),
        salt: Buffer.from(salt, 'base64url'),
        received: Number(received),
      };
    }),
  );
  return kept;
}

/** As the documentation says it, in code of its own. */
function entryOf({ id, body, salt, received }: Kept): Buffer {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(received));
  const digest = createHash('sha256').update(body).digest();
  return createHash('sha256')
    .update('millrace receipt v1\n')
    .update(salt)
    .update(time)
    .update(digest)
    .update(id)
    .digest();
}

async function proofs(receiver: ReceiverProcess, all: readonly Kept[]) {
  const base = new URL('/receipts/', receiver.url);
  const key = (await (await fetch(new URL('key', base))).text()).trim();
  return Promise.all(
    all.map(async (kept) => {
      const proof = await until('the entry to be in the log', async () => {
        const answer = await fetch(new URL(String(kept.leaf), base));
        return answer.status === 200 && answer.text();
      });
      return { key, entry: entryOf(kept), proof };
    }),
  );
}

const numbers = (from: number, count: number) => Array.from({ length: count }, (_, n) => from + n);

test.skipIf(LACKS_GO)(
  `each 202 has a receipt that Go verifies, over kills and restarts${skipped(LACKS_GO)}`,
  async () => {
    const { config } = await configured();
    let receiver = await ReceiverProcess.start(config);
    const kept = await send(receiver, numbers(0, 300));
    await receiver.kill('SIGKILL');
    receiver = await ReceiverProcess.start(config);
    kept.push(...(await send(receiver, numbers(300, 300))));
    await receiver.kill('SIGTERM');
    receiver = await ReceiverProcess.start(config);
    kept.push(...(await send(receiver, numbers(600, 10))));
    expect(new Set(kept.map(({ leaf }) => leaf)).size).toBe(kept.length);
    expect(kept.map(({ leaf }) => leaf).toSorted((a, b) => a - b)).toEqual(numbers(0, kept.length));
    const said = verifyInGo(await proofs(receiver, kept));
    expect(said.filter((one) => !one.startsWith('ok '))).toEqual([]);
    // A repeated delivery is none of its own, and there is nothing for what is not in the log.
    const { id, body } = kept[3]!;
    const again = await postSigned(receiver.url, body, { id });
    expect([again.status, again.headers['millrace-receipt']]).toEqual([200, undefined]);
    expect((await fetch(new URL('/receipts/610', receiver.url))).status).toBe(404);
    expect((await fetch(new URL('/receipts/tile/0/000', receiver.url))).status).toBe(200);
  },
);
