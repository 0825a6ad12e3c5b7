import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { EXIT, MillraceError } from '../../core/errors.ts';
import { countArchive, type DemoCounts } from './count.ts';
import { demoRequests, Tally, type DemoRequest } from './requests.ts';
import { startDemoApp, untilDelivered } from './app.ts';
import { demoHistory, type DemoHistory } from './history.ts';
import { note, print, type Io } from '../io.ts';
import { option, wholeNumber } from '../options.ts';
import { Sender } from '../sender.ts';

const HELP = `
Examples:
  millrace demo
  millrace demo --events 5000 --json

Starts a receiver on a free port with a secret made for the occasion, sends it signed events of the documented types
and, beside them, duplicates, forged, stale, invalid and oversized ones. A stand-in of the service sends its own, has its
bulk pull triggered and followed, and its meals land in tables. Then the demo waits for delivery, stops the receiver and
counts from the files themselves. Exit codes: 0 the counts add up, 1 they do not.`;

/** Connections of the sender: as many as a busy service would hold open. */
const CONNECTIONS = 16;

/** `millrace demo`: the main job once, bounded, proved from the files it leaves. */
export function demoCommand(io: Io): Command {
  return new Command('demo')
    .description('send events through a temporary receiver; prove the counts from the files')
    .addOption(option('--events <n>', 'good events to send', wholeNumber(1), '1000'))
    .option('--json', 'print one JSON object as the last line')
    .addHelpText('after', HELP)
    .action(async (options: { events: number; json?: boolean }) => {
      const folder = await mkdtemp(join(tmpdir(), 'millrace-demo-'));
      const app = await startDemoApp(io, folder);
      note(io, `receiver   ${app.url}`);
      const tally = new Tally();
      let history: DemoHistory;
      try {
        await send(io, app.url, demoRequests(options.events, app.secret), tally);
        note(io, `answered   ${tally.sent} requests`);
        note(io, 'history    a bulk pull from a stand-in of the service');
        history = await demoHistory(app, folder, io.signal);
        await untilDelivered(app.operations, io.signal);
      } finally {
        await app.stop(AbortSignal.timeout(30_000));
      }
      const counts = await countArchive(join(folder, 'archive'), tally, history);
      if (options.json === true) print(io, JSON.stringify(counts));
      else print(io, render(counts));
      io.setExit(counts.ok ? EXIT.done : EXIT.failed);
    });
}

async function send(io: Io, url: string, requests: Iterable<DemoRequest>, tally: Tally): Promise<void> {
  const sender = new Sender(url, CONNECTIONS);
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  try {
    for (const request of requests) {
      if (io.signal.aborted) throw new MillraceError('interrupted', 'nothing is kept of an unfinished demo');
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
  const { archive, files, history, problems } = counts;
  return [
    `sent         ${sent}`,
    `accepted     ${accepted}`,
    `duplicates   ${duplicates}   (answered 200, not forwarded again)`,
    `quarantined  ${quarantined}   (authentic, but invalid: kept apart)`,
    `refused      ${refused}   (forged, stale or too large)`,
    `delivered    ${delivered}   in ${files} ${files === 1 ? 'file' : 'files'} below ${archive}`,
    `history      ${history.meals} meals with ${history.meal_items} foods of ${history.users} users in ${history.tables}`,
    `             plus ${history.events} events that the stand-in of the service signed and sent`,
    ...problems.map((problem) => `problem      ${problem}`),
    ok ? 'The files hold every accepted event once, byte for byte.' : 'The counts do not add up.',
  ].join('\n');
}
