import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startAmqpPeer } from '../support/amqp-peer/peer.ts';
import { temporaryFolder } from '../support/folders.ts';
import { ROOT } from '../support/millrace.ts';
import { lacksPubSubEmulator, startPubSubEmulator } from '../support/pubsub-emulator.ts';
import { firstLack, lacksProgram, skipped } from '../support/requirements.ts';
import { quoted, shellPlace } from '../support/shell.ts';
import { README, typed } from './readme.ts';

const noBroker = firstLack(...['bash', 'curl', 'openssl'].map(lacksProgram), lacksPubSubEmulator());

test.skipIf(noBroker !== null)(
  `the README’s config for the brokers brings events to both${skipped(noBroker)}`,
  async () => {
    const yaml =
      README.find(({ info, text }) => info[0] === 'yaml' && text.includes('type: pubsub'))?.text ?? '';
    const [peer, emulator] = await Promise.all([
      startAmqpPeer({ hubs: ['events', 'labtest-events', 'wearable-events'] }),
      startPubSubEmulator(),
    ]);
    onTestFinished(async () => {
      await Promise.all([peer.stop(), emulator.stop()]);
    });
    const { folder, run } = await shellPlace(await temporaryFolder());
    writeFileSync(join(folder, 'brokers.yaml'), yaml);
    const script = [
      `${quoted(process.execPath)} ${quoted(join(ROOT, 'deploy/compose/make-topics.js'))} "$PUBSUB_EMULATOR_HOST" acme events wearables`,
      'export MILLRACE_SECRET=whsec_…\nmillrace serve --config brokers.yaml',
      'millrace send --type daily.data.meal.created --count 3',
    ];
    await run(typed(script.join('\n')), {
      PUBSUB_EMULATOR_HOST: emulator.endpoint,
      EVENT_HUBS: peer.connectionString,
    });
    await peer.received('wearable-events', 3);
    const ids = await pulled(emulator.endpoint, 'wearables', 3);
    expect(ids.size).toBe(3);
  },
);

/** Reads a subscription until it has given so many messages; their ids. */
async function pulled(endpoint: string, subscription: string, count: number): Promise<Set<string>> {
  const url = `http://${endpoint}/v1/projects/acme/subscriptions/${subscription}:pull`;
  const ids = new Set<string>();
  while (ids.size < count) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ maxMessages: 10 }),
      signal: AbortSignal.timeout(120_000),
    });
    const { receivedMessages = [] } = (await response.json()) as {
      receivedMessages?: { message: { attributes: Record<string, string> } }[];
    };
    for (const { message } of receivedMessages) ids.add(message.attributes['idempotency-key'] ?? '');
  }
  return ids;
}
