import { createHmac } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import type { Event } from '../../src/core/event.ts';
import type { AppendResult } from '../../src/core/ingest.ts';
import { type Checked, sharedNow } from '../../src/receive/check-batch.ts';
import { Checker } from '../../src/receive/checker.ts';
import type { Delivery } from '../../src/receive/delivery.ts';
import { handleDelivery } from '../../src/receive/handle-delivery.ts';
import type { Stages } from '../../src/receive/stages.ts';
import { createValidator, DEFAULT_ENVELOPE } from '../../src/validate/envelope.ts';
import { TEAM, USER } from '../support/events.ts';
import { until } from '../support/until.ts';
import { head, RawClient, SECRET, start, verifierOf } from './support.ts';

const OTHER_SECRET = `whsec_${Buffer.alloc(24, 8).toString('base64')}`;
const MANY = 100;

/** A valid body of so many bytes. */
function bodyOf(bytes: number, note = ''): Buffer {
  const about = { event_type: 'daily.data.meal.created', team_id: TEAM, user_id: USER, client_user_id: 'c' };
  const text = JSON.stringify({ ...about, data: { note, pad: '' } });
  return Buffer.from(text.replace('"pad":""', `"pad":"${'x'.repeat(Math.max(0, bytes - text.length))}"`));
}

function signatureOf(id: string, timestamp: string, body: Buffer, secret = SECRET): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

function headersOf(id: string, body: Buffer, secret = SECRET): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = signatureOf(id, timestamp, body, secret);
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
}

function stagesOf(...secrets: string[]): Pick<Stages, 'verifier' | 'validate'> {
  return { verifier: verifierOf(...secrets), validate: createValidator(DEFAULT_ENVELOPE) };
}

function deliveryOf(body: Buffer, stages: object, secret = SECRET): Delivery {
  const request = { headers: headersOf('msg_1', body, secret) };
  return { request, stages, examined: { receivedAt: Date.now() } } as unknown as Delivery;
}

/** Answers later, or there would never be many at a time. */
const into =
  (events: Event[]) =>
  async (event: Event): Promise<AppendResult> => {
    await new Promise((resolve) => setImmediate(resolve));
    return { status: 'accepted', seq: events.push(event) };
  };

interface Running {
  readonly checker: Checker;
  readonly errors: unknown[];
  readonly worker: () => Worker;
}

/** However busy the machine is, nothing takes the thread so long. */
const neverLate = (): number => sharedNow() + 1e9;

/** A checker whose thread has started. */
async function running(stages: object, now = neverLate): Promise<Running> {
  const workers: Worker[] = [];
  const note = (worker: Worker): number => workers.push(worker);
  process.on('worker', note);
  const errors: unknown[] = [];
  const checker = new Checker((error) => errors.push(error), 4, now);
  onTestFinished(async () => {
    process.off('worker', note);
    await checker.close();
  });
  const first = deliveryOf(bodyOf(9000), stages);
  await until('the thread', () => checker.take(first, bodyOf(9000), MANY, () => undefined));
  return { checker, errors, worker: () => workers[0] as Worker };
}

/** What is found of each of some bodies that are taken in one turn. */
function checked(
  checker: Checker,
  deliveries: readonly (readonly [Delivery, Buffer])[],
): Promise<(Checked | null)[]> {
  return Promise.all(
    deliveries.map(
      ([delivery, body]) =>
        new Promise<Checked | null>((found) => {
          if (!checker.take(delivery, body, MANY, found)) throw new Error('it goes on at once');
        }),
    ),
  );
}

test('the thread says which key matched, and where members stand in what is authentic and usual', async () => {
  const stages = stagesOf(OTHER_SECRET, SECRET);
  const { checker } = await running(stages);
  const usual = bodyOf(9000);
  const invalid = Buffer.concat([usual, Buffer.from('!')]);
  const notUtf8 = Buffer.from(bodyOf(9000, 'NOTE').toString().replace('NOTE', '\u00e9'), 'latin1');
  const found = await checked(checker, [
    [deliveryOf(usual, stages), usual],
    [deliveryOf(usual, stages, OTHER_SECRET), usual],
    [deliveryOf(usual, stages, `whsec_${Buffer.alloc(24, 9).toString('base64')}`), usual],
    [deliveryOf(invalid, stages), invalid],
    [deliveryOf(notUtf8, stages), notUtf8],
    [deliveryOf(usual, stages), invalid],
  ]);
  expect(found.map((one) => one?.matched)).toEqual([1, 0, -1, 1, 1, -1]);
  expect(found.map((one) => one?.spans !== null)).toEqual([true, true, false, false, false, false]);
  const [from = 0, to = 0] = found[0]?.spans ?? [];
  expect(usual.toString('utf8', from, to)).toBe('"daily.data.meal.created"');
});

test('deliveries go on in the order in which they came, small ones behind large ones', async () => {
  const stages = stagesOf(SECRET);
  const { checker } = await running(stages);
  const order: number[] = [];
  const sizes = [9000, 10, 300_000, 5000, 10, 700_000, 4096, 4095];
  const waiting = sizes.map((bytes, index) => {
    const body = bodyOf(bytes);
    return new Promise<Checked | null>((found) => {
      const isTaken = checker.take(deliveryOf(body, stages), body, MANY, (one) => {
        order.push(index);
        found(one);
      });
      expect(isTaken).toBe(true);
    });
  });
  const found = await Promise.all(waiting);
  expect(order).toEqual(sizes.map((_, index) => index));
  expect(found.map((one) => one?.matched ?? null)).toEqual([0, null, 0, 0, null, null, 0, null]);
  // With nothing in front of it a small one goes on at once, and so does a large one with few others.
  expect(checker.take(deliveryOf(bodyOf(10), stages), bodyOf(10), MANY, () => undefined)).toBe(false);
  expect(checker.take(deliveryOf(bodyOf(9000), stages), bodyOf(9000), 7, () => undefined)).toBe(false);
});

test('each body goes by the secrets and names that it came under', async () => {
  const before = stagesOf(SECRET);
  const fields = { ...DEFAULT_ENVELOPE.fields, type: 'kind' };
  const after = {
    verifier: verifierOf(OTHER_SECRET),
    validate: createValidator({ ...DEFAULT_ENVELOPE, fields, maxDepth: 1 }),
  };
  const { checker } = await running(before);
  const body = bodyOf(9000);
  const flat = Buffer.from(`{"kind":"a.b","pad":"${'x'.repeat(9000)}"}`);
  const found = await checked(checker, [
    [deliveryOf(body, before), body],
    [deliveryOf(body, after), body],
    [deliveryOf(body, after, OTHER_SECRET), body],
    [deliveryOf(flat, after, OTHER_SECRET), flat],
    [deliveryOf(body, before), body],
  ]);
  expect(found.map((one) => one?.matched)).toEqual([0, -1, 0, 0, 0]);
  expect(found.map((one) => one?.spans !== null)).toEqual([true, false, false, true, true]);
});

test('when the thread dies all that waits goes on unchecked, and what follows at once', async () => {
  const stages = stagesOf(SECRET);
  const { checker, worker } = await running(stages);
  const body = bodyOf(9000);
  const waiting = checked(checker, [
    [deliveryOf(body, stages), body],
    [deliveryOf(body, stages), body],
  ]);
  await worker().terminate();
  expect(await waiting).toEqual([null, null]);
  expect(checker.take(deliveryOf(body, stages), body, MANY, () => undefined)).toBe(false);
});

test('a thread that does not get to its work in time is left alone for a while', async () => {
  const stages = stagesOf(SECRET);
  let ahead = 1e9;
  const { checker } = await running(stages, () => sharedNow() + ahead);
  const body = bodyOf(9000);
  const take = (): boolean => checker.take(deliveryOf(body, stages), body, MANY, () => undefined);
  // As if it had waited for ten seconds.
  ahead = -10_000;
  await checked(checker, [[deliveryOf(body, stages), body]]);
  expect(take()).toBe(false);
  ahead = 1e9;
  expect(take()).toBe(true);
});

test('a delivery that ran out of time while its body was checked is not stored', async () => {
  const stored: unknown[] = [];
  const request = Object.assign(new EventEmitter(), { headers: {}, pause: () => undefined });
  const share = { take: () => true, work: 0 };
  const examined = { encoding: 'identity', length: 2 };
  const ingest = { accept: (event: unknown) => stored.push(event) };
  const stages = { limits: { maxBodyBytes: 100 }, ingest };
  const delivery = { request, response: {}, examined, stages, share, isEnded: false };
  const goOn = Promise.withResolvers<(found: Checked | null) => void>();
  const outcome = new Promise((settle) => {
    handleDelivery(
      delivery as unknown as Delivery,
      (_, proceed) => {
        goOn.resolve(proceed);
        return true;
      },
      settle,
    );
  });
  request.emit('data', Buffer.from('{}'));
  request.emit('end');
  delivery.isEnded = true;
  (await goOn.promise)({ matched: 0, spans: null });
  expect(await outcome).toEqual({ kind: 'gone' });
  expect(stored).toEqual([]);
});

test('a receiver in a rush answers as one at rest: forged, invalid, repeated and small ones among large ones', async () => {
  let ready = 0;
  const note = (worker: Worker): void => void worker.once('message', () => (ready += 1));
  process.on('worker', note);
  onTestFinished(() => void process.off('worker', note));
  const accepted: Event[] = [];
  const quarantined: Event[] = [];
  const { port } = await start({
    cores: 4,
    ingest: { accept: into(accepted), quarantine: into(quarantined) },
  });
  const kinds = ['large', 'forged', 'small', 'not JSON', 'foreign'] as const;
  const wanted = { large: '202', forged: '401', small: '202', 'not JSON': '202', foreign: '401' };
  const counts = { large: 0, forged: 0, small: 0, 'not JSON': 0, foreign: 0 };
  const post = (n: number): Buffer => {
    const kind = kinds[n % kinds.length] ?? 'large';
    counts[kind] += 1;
    const body = kind === 'not JSON' ? Buffer.alloc(9000, '[') : bodyOf(kind === 'small' ? 10 : 9000, `${n}`);
    const headers = headersOf(`msg_${n}`, body, kind === 'foreign' ? OTHER_SECRET : SECRET);
    if (kind === 'forged') body[body.indexOf('xx')] = 0x79;
    const sent = { 'content-type': 'application/json', 'content-length': body.length, ...headers };
    return Buffer.concat([Buffer.from(head(sent)), body]);
  };
  const clients = Array.from({ length: 24 }, () => new RawClient(port));
  await Promise.all(clients.map(({ socket }) => once(socket, 'connect')));
  const EACH = 20;
  // Once more when the thread has started.
  for (const round of [0, 1]) {
    await Promise.all(
      clients.map(async (client, which) => {
        const first = (round * clients.length + which) * EACH;
        const numbers = Array.from({ length: EACH }, (_, n) => first + n);
        client.text = '';
        client.socket.write(Buffer.concat(numbers.map(post)));
        await client.until(new RegExp(`(HTTP/1[^]*?\\r\\n\\r\\n\\{[^}]*\\}){${EACH}}`));
        const statuses = [...client.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
        expect(statuses).toEqual(numbers.map((n) => wanted[kinds[n % kinds.length] ?? 'large']));
      }),
    );
    await until('the thread', () => ready === 1);
  }
  expect(accepted).toHaveLength(counts.large + counts.small);
  expect(quarantined).toHaveLength(counts['not JSON']);
  for (const { id, body } of accepted)
    expect(body.toString()).toContain(`"note":"${id.slice('msg_'.length)}"`);
});
