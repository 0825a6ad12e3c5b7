import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { EXIT } from '../../core/errors.ts';
import { countArchive, type DemoCounts } from './count.ts';
import { demoRequests, Tally, type DemoRequest } from './requests.ts';
import { startDemoApp, untilDelivered } from './app.ts';
import { demoHistory, type DemoHistory } from './history.ts';
import { note, print, usageError, type Io } from '../io.ts';
import { option, wholeNumber } from '../options.ts';
import { withPlaces } from '../places.ts';
import { Sender } from '../sender.ts';
import { openDemoStore, type DemoStore } from './store.ts';
import { unfinished } from './child.ts';

const HELP = `
Examples:
  millrace demo
  millrace demo --events 5000 --json
  millrace demo --store s3                    the archive in a stand-in of S3: pip install 'moto[server]'
  millrace demo --store s3://bucket/prefix    in a store of yours, below a new prefix; its objects stay there
  millrace demo --fleet 2 --kafka ~/kafka_2.13-4.2.0       a broker of an unpacked release; needs Java
  millrace demo --fleet 2 --brokers localhost:9092         a broker that runs, without TLS and sign-in

Starts a receiver on a free port with a secret made for the occasion, sends it signed events of the documented types
and, beside them, duplicates, forged, stale, invalid and oversized ones. A stand-in of the service sends its own, has its
bulk pull triggered and followed, and its meals land in tables. Then the demo waits for delivery, stops the receiver and
counts from the files themselves. With --store these are objects: it verifies them, counts what a replay would send, exports
them to a Delta table and counts its rows. Exit codes: 0 the counts add up, 1 they do not, 2 usage, or there is no stand-in.

With --fleet 2 it starts two replicas that share a journal in topics of their own, sends good events to both, kills one with
SIGKILL amid the load, sends what it did not answer to the other, and some of what was answered once more. When all is
delivered it proves from the archives of both that every event with a 2xx is there, byte for byte, in the order of its user;
those that were under way at the kill may be there twice, and are counted. The topics are deleted in the end.`;

/** Connections of the sender: as many as a busy service would hold open. */
const CONNECTIONS = 16;

interface Options {
  readonly events: number;
  readonly store?: string;
  readonly fleet?: string;
  readonly kafka?: string;
  readonly brokers?: readonly string[];
  readonly json?: boolean;
}

export function demoCommand(io: Io): Command {
  return new Command('demo')
    .description('send events through a temporary receiver; prove the counts from the files')
    .addOption(option('--events <n>', 'good events to send', wholeNumber(1), '1000'))
    .option('--store <store>', 'archive in an object store: s3 (a stand-in on this machine), or a URL')
    .addOption(
      new Option('--fleet <replicas>', 'kill one of two replicas on Kafka').choices(['2']).conflicts('store'),
    )
    .option('--kafka <folder>', 'with --fleet: an Apache Kafka to start a broker of (default: KAFKA_HOME)')
    .addOption(
      option('--brokers <addresses>', 'with --fleet: host:port of brokers that run', readBrokers).conflicts(
        'kafka',
      ),
    )
    .option('--json', 'print one JSON object as the last line')
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      if (options.fleet !== undefined) return fleet(io, options);
      if (options.kafka !== undefined || options.brokers !== undefined)
        throw usageError('--kafka and --brokers are for --fleet 2');
      const store = options.store === undefined ? null : await openDemoStore(options.store, io);
      try {
        const counts = await runDemo(io, options.events, store);
        if (options.json === true) print(io, JSON.stringify(counts));
        else print(io, render(counts));
        io.setExit(counts.ok ? EXIT.done : EXIT.failed);
      } finally {
        await store?.stop();
      }
    });
}

async function fleet(io: Io, { events, kafka, brokers, json }: Options): Promise<void> {
  // Loaded by who asks for it.
  const { renderFleet, runFleetDemo } = await import('./fleet.ts');
  const counts = await runFleetDemo(io, { events, kafka, brokers });
  print(io, json === true ? JSON.stringify(counts) : renderFleet(counts));
  io.setExit(counts.ok ? EXIT.done : EXIT.failed);
}

function readBrokers(text: string): readonly string[] {
  const brokers = text.split(',');
  if (brokers.every((broker) => /^[^\s/]+:\d{1,5}$/.test(broker))) return brokers;
  throw new TypeError('must be host:port, or several with commas between them');
}

async function runDemo(io: Io, events: number, store: DemoStore | null): Promise<DemoCounts> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-demo-'));
  const app = await startDemoApp(io, folder, store);
  note(io, `receiver   ${app.url}`);
  const tally = new Tally();
  let history: DemoHistory;
  try {
    await send(io, app.url, demoRequests(events, app.secret), tally);
    note(io, `answered   ${tally.sent} requests`);
    note(io, 'history    a bulk pull from a stand-in of the service');
    history = await demoHistory(app, folder, io.signal);
    await untilDelivered(app.operations, io.signal);
  } finally {
    await app.stop(AbortSignal.timeout(30_000));
  }
  return withPlaces(store?.storage ?? null, async (places) => {
    const counts = await countArchive(app.archive, places, tally, history);
    if (store === null) return counts;
    note(io, 'onward     a replay counted, an export to a Delta table read back');
    // Loaded by who asks for it.
    const { sendOnward } = await import('./onward.ts');
    const ids = new Set([...tally.bodies.keys(), ...history.events.keys()]);
    const work = join(folder, 'work');
    const given = { archive: app.archive, places, ids, work, signal: io.signal };
    const { problems: found, ...onward } = await sendOnward(store, given);
    const problems = [...counts.problems, ...found].slice(0, 20);
    return { ...counts, ok: problems.length === 0, onward, problems };
  });
}

async function send(io: Io, url: string, requests: Iterable<DemoRequest>, tally: Tally): Promise<void> {
  const sender = new Sender(url, CONNECTIONS);
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  try {
    for (const request of requests) {
      if (io.signal.aborted) throw unfinished();
      await sender.room(CONNECTIONS * 4);
      const done: Promise<void> = sender
        .send(request)
        .then((answer) => tally.count(request, answer))
        .catch((error: unknown) => void failures.push(error))
        .finally(() => running.delete(done));
      running.add(done);
      if (tally.sent > 0 && tally.sent % 1000 === 0) note(io, `answered   ${tally.sent}`);
    }
    await Promise.all(running);
    // After all the others: an event can only come again once it came.
    for (const request of tally.repeats()) tally.count(request, await sender.send(request));
  } finally {
    await sender.close();
  }
  if (failures.length > 0) throw failures[0];
}

function render(counts: DemoCounts): string {
  const { ok, sent, accepted, duplicates, quarantined, refused, delivered } = counts;
  const { archive, files, history, onward, problems } = counts;
  return [
    `sent         ${sent}`,
    `accepted     ${accepted}`,
    `duplicates   ${duplicates}   (answered 200, not forwarded again)`,
    `quarantined  ${quarantined}   (authentic, but invalid: kept apart)`,
    `refused      ${refused}   (forged, stale or too large)`,
    `delivered    ${delivered}   in ${files} ${files === 1 ? 'file' : 'files'} below ${archive}`,
    `history      ${history.meals} meals with ${history.meal_items} foods of ${history.users} users in ${history.tables}`,
    `             plus ${history.events} events that the stand-in of the service signed and sent`,
    ...(onward === undefined
      ? []
      : [
          `replay       ${onward.replayed}   events would be sent, counted from the objects`,
          `export       ${onward.rows}   rows read back from ${onward.table}`,
        ]),
    ...problems.map((problem) => `problem      ${problem}`),
    ok
      ? `The ${onward === undefined ? 'files' : 'objects'} hold every accepted event once, byte for byte.`
      : 'The counts do not add up.',
  ].join('\n');
}
