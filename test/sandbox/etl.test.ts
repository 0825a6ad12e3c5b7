import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { sandboxCommand } from '../../src/cli/sandbox/command.ts';
import { readEtl } from '../../src/cli/sandbox/etl.ts';
import { openPipelines } from '../../src/cli/sandbox/pipelines.ts';
import { parseBlobName } from '../../src/replay/blob-name.ts';
import { madeUpEvent, type MadeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startSandbox, type Sandbox } from '../../src/sandbox/start.ts';
import { startAmqpPeer, type AmqpPeer } from '../support/amqp-peer/peer.ts';
import { temporaryFolder } from '../support/folders.ts';
import { PROJECT, startPubSubPeer } from '../support/pubsub-peer/peer.ts';
import { run } from '../cli/run.ts';
import { until } from '../support/until.ts';

/** Large ones among them, which are compressed. */
const events = Array.from({ length: 60 }, (_, n): MadeUpEvent =>
  n % 5 === 0 ? grown(n, 3000) : madeUpEvent(n),
);
const LABS = (type: string): boolean => type.startsWith('labtest.') || type.startsWith('lab_report.');

test('events reach Event Hubs by prefix, through an outage', async () => {
  const folder = await temporaryFolder();
  const peer = await hubsPeer();
  const sandbox = await start(folder, {
    hubs: {
      type: 'event-hubs',
      connectionString: peer.connectionString,
      hub: 'events',
      timeout: '10s',
      routes: [
        { event_type_prefix: 'labtest.', event_hub: 'labs' },
        { event_type_regex: '^lab_report\\.', event_hub: 'labs' },
        { event_type_prefix: 'lab', event_hub: 'never' },
      ],
    },
  });
  sandbox.sendEvents(events.slice(0, 20));
  await peer.received('events', events.slice(0, 20).filter(({ type }) => !LABS(type)).length);
  await peer.stop();
  sandbox.sendEvents(events.slice(20));
  await peer.restart();
  const messages = () =>
    ['events', 'labs'].flatMap((hub) => peer.messages(hub).map((one) => ({ hub, ...one })));
  const idOf = ({ properties }: ReturnType<typeof messages>[number]) => String(properties['idempotency-key']);
  await until('all events', () => new Set(messages().map(idOf)).size === events.length);
  for (const message of messages()) {
    const { hub, properties, body, partitionKey } = message;
    const event = events.find(({ id }) => id === idOf(message))!;
    expect([event.type, hub]).toEqual([event.type, LABS(event.type) ? 'labs' : 'events']);
    const { user_id, team_id } = JSON.parse(event.body.toString()) as Record<string, string>;
    const zipped = event.body.length >= 1024;
    expect(properties).toEqual({
      'event-type': event.type,
      'idempotency-key': event.id,
      'user-id': user_id,
      'team-id': team_id,
      ...(zipped ? { 'content-encoding': 'gzip' } : {}),
    });
    expect(partitionKey).toBe(user_id);
    expect((zipped ? gunzipSync(body) : body).equals(event.body)).toBe(true);
  }
});

test('events reach Pub/Sub by prefix, in the older spelling too', async () => {
  const folder = await temporaryFolder();
  const peer = await startPubSubPeer({
    topics: ['events', 'labs'],
    subscriptions: { events: 'events', labs: 'labs' },
    ordered: true,
  });
  onTestFinished(() => peer.stop());
  const sandbox = await start(folder, {
    topics: {
      type: 'pubsub',
      project: PROJECT,
      endpoint: peer.endpoint,
      topic: 'events',
      ordering: true,
      metadata: 'underscores',
      routes: [{ event_type_prefix: 'lab', topic: 'labs' }],
    },
  });
  sandbox.sendEvents(events);
  const messages = () =>
    ['events', 'labs'].flatMap((topic) => peer.messages(topic).map((one) => ({ topic, ...one })));
  const ids = () => new Set(messages().map(({ attributes }) => attributes['idempotency_key']));
  await until('all events', () => ids().size === events.length);
  for (const { topic, attributes, data: sent, orderingKey } of messages()) {
    const { id, type, body } = events.find((one) => one.id === attributes['idempotency_key'])!;
    expect([type, topic]).toEqual([type, type.startsWith('lab') ? 'labs' : 'events']);
    expect((body.length >= 1024 ? gunzipSync(sent) : sent).equals(body)).toBe(true);
    expect(attributes).toEqual({
      event_type: type,
      idempotency_key: id,
      blob_type: 'json',
      ...(body.length >= 1024 ? { blob_codec: 'gzip' } : {}),
    });
    expect(orderingKey).toBe((JSON.parse(body.toString()) as { user_id: string }).user_id);
  }
});

test('what a hub does not take lies in a blob of the documented name; the rest of its user follows', async () => {
  const folder = await temporaryFolder();
  const peer = await hubsPeer();
  const hubs = { type: 'event-hubs', connectionString: peer.connectionString, hub: 'events', blobs: 'blobs' };
  const sandbox = await start(folder, { hubs });
  const large = grown(1, 1_500_000, true);
  const after = madeUpEvent(51);
  sandbox.sendEvents([large, after]);
  await peer.received('events', 1);
  expect(peer.messages('events').map(({ properties }) => properties['idempotency-key'])).toEqual([after.id]);
  const files = readdirSync(join(folder, 'blobs'), { recursive: true, encoding: 'utf8' });
  const file = files.find((name) => name.endsWith('.json.gz'));
  const { user_id: user } = JSON.parse(large.body.toString()) as { user_id: string };
  expect(parseBlobName(file!)).toMatchObject({
    id: large.id,
    known: { type: large.type, user, team: sandbox.teamId },
  });
  expect(gunzipSync(readFileSync(join(folder, 'blobs', file!))).equals(large.body)).toBe(true);
});

test('the command publishes what happens, by a file that takes its secrets from variables', async () => {
  const folder = await temporaryFolder();
  const peer = await hubsPeer();
  const file = join(folder, 'etl.yaml');
  writeFileSync(
    file,
    'destinations: { hubs: { type: event-hubs, hub: events, connectionString: "${HUBS}" } }\n',
  );
  const stop = new AbortController();
  const args = ['--port', '0', '--users', '2', '--daily', '10ms', '--etl', file, '--json'];
  const ended = run((io) => sandboxCommand({ ...io, signal: stop.signal }), args, {
    HUBS: peer.connectionString,
  });
  await Promise.race([peer.received('events', 3), ended]);
  stop.abort();
  const { stdout, stderr } = await ended;
  const { team_id } = JSON.parse(stdout) as { team_id: string };
  expect(stderr).not.toContain('given up');
  const properties = { 'event-type': 'daily.data.meal.created', 'team-id': team_id };
  for (const message of peer.messages('events')) expect(message).toMatchObject({ properties });
});

test('a file that is wrong is refused with the place of each problem', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'etl.yaml');
  writeFileSync(file, 'destinations:\n  hubs: { type: event-hubs, hub: a, routes: [{ event_hub: b }] }\n');
  expect(() => readEtl(file, {})).toThrow(
    /etl\.yaml:2:\d+: destinations\.hubs\.routes\[0\]: needs event_type_prefix/,
  );
  writeFileSync(
    file,
    'destinations: { hubs: { type: event-hubs, hub: a, connectionString: "${NOT_THERE}" } }',
  );
  expect(() => readEtl(file, {})).toThrow(/connectionString: needs the environment variable NOT_THERE/);
  writeFileSync(file, 'destinations: { hubs: { type: event-hubs, hub: a, conectionString: x } }');
  await expect(openPipelines(readEtl(file, {}), pino({ level: 'silent' }))).rejects.toThrow(
    /destinations\.hubs: .*conectionString/,
  );
  expect(existsSync(join(folder, 'blobs'))).toBe(false);
});

async function hubsPeer(): Promise<AmqpPeer> {
  const peer = await startAmqpPeer({ hubs: ['events', 'labs'] });
  onTestFinished(() => peer.stop());
  return peer;
}

/** A sandbox of ten users with these pipelines; its end is waited for. */
async function start(folder: string, destinations: object): Promise<Sandbox> {
  const file = join(folder, 'etl.yaml');
  writeFileSync(file, JSON.stringify({ destinations }));
  const pipelines = await openPipelines(readEtl(file, {}), pino({ level: 'silent' }));
  const sandbox = await startSandbox({ users: 10, pipelines });
  onTestFinished(async () => {
    expect(await pipelines.close()).toBe(0);
    await sandbox.stop();
  });
  return sandbox;
}

/** An event with a body of at least so many bytes, which compresses badly if asked for. */
function grown(n: number, bytes: number, incompressible = false): MadeUpEvent {
  const event = madeUpEvent(n);
  const body = JSON.parse(event.body.toString()) as { data: object };
  let state = n + 1;
  const noise = Array.from({ length: bytes }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return String.fromCharCode(48 + ((state >>> 16) % 75));
  });
  const note = incompressible ? noise.join('') : 'x'.repeat(bytes);
  return { ...event, body: Buffer.from(JSON.stringify({ ...body, data: { ...body.data, note } })) };
}
