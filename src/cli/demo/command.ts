import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { startApp, type App } from '../../app/app.ts';
import { resolveText } from '../../config/load.ts';
import { EXIT, MillraceError } from '../../core/errors.ts';
import type { Operations } from '../../core/operations.ts';
import { newSecret } from '../../core/secrets.ts';
import { countArchive, type DemoCounts } from './count.ts';
import { DEMO_BODY_LIMIT, DemoAnswers, demoRequests, type DemoRequest } from './requests.ts';
import { demoHistory, type DemoHistory } from './history.ts';
import { note, plural, printResult, type Io } from '../io.ts';
import { createLog } from '../log.ts';
import { commandOf, type OptionsOf, readBy, wholeNumber } from '../options.ts';
import { withPlaces } from '../places.ts';
import { Sender } from '../sender.ts';
import { StatusLine } from '../status-line.ts';

const HELP = `
Examples:
  millrace demo
  millrace demo --events 5000 --json

Starts a receiver on a free port with a new secret, and sends it signed events of the documented types, with duplicates, forged,
stale, invalid and oversized ones among them. A stand-in of the service sends events too, and its history is fetched into tables.
Then the demo waits for delivery, stops the receiver, and counts the events in the files.

Exit codes: 0 the counts add up, 1 they do not, 2 usage.`;

/** Connections of the sender. */
const CONNECTIONS = 16;

const OPTIONS = {
  '--events <n>': readBy(wholeNumber(1), 'good events to send', '1000'),
  '--json': 'print one JSON object as the last line',
};
type Options = OptionsOf<typeof OPTIONS>;

export function demoCommand(io: Io): Command {
  return commandOf('demo', OPTIONS, HELP)
    .description('send events through a temporary receiver; prove the counts from the files')
    .action(async (options: Options) => {
      const counts = await runDemo(io, options.events);
      printResult(io, options, counts, render(counts));
      io.setExit(counts.ok ? EXIT.done : EXIT.failed);
    });
}

async function runDemo(io: Io, events: number): Promise<DemoCounts> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-demo-'));
  const app = await startDemoApp(io, folder);
  note(io, `receiver   ${app.url}`);
  const answers = new DemoAnswers();
  let history: DemoHistory;
  try {
    await send(io, app.url, demoRequests(events, app.secret), answers);
    note(io, `answered   ${answers.sent} requests`);
    note(io, 'history    a bulk pull from a stand-in of the service');
    history = await demoHistory(app, folder, io.signal);
    await untilDelivered(app.operations, io.signal);
  } finally {
    await app.stop(AbortSignal.timeout(30_000));
  }
  return withPlaces(null, (places) => countArchive(app.archive, places, answers, history));
}

/** A receiver with all its data below `folder`. */
async function startDemoApp(
  io: Io,
  folder: string,
): Promise<App & { readonly secret: string; readonly archive: string }> {
  const archive = join(folder, 'archive');
  const secret = newSecret();
  const text = JSON.stringify({
    server: { host: '127.0.0.1', port: 0, maxBodyBytes: DEMO_BODY_LIMIT },
    admin: { enabled: false },
    signing: { secrets: [secret] },
    journal: { path: join(folder, 'journal') },
    erasure: { path: join(folder, 'erasure') },
    sinks: { archive: { type: 'files', path: archive } },
  });
  // Without the environment: a demo must not use production secrets.
  const app = await startApp(await resolveText(text, { file: 'demo.yaml', env: {} }), {
    log: createLog(io, { level: 'error' }),
    onFailure: (error) => {
      throw error;
    },
  });
  return { ...app, secret, archive };
}

async function send(
  io: Io,
  url: string,
  requests: Iterable<DemoRequest>,
  answers: DemoAnswers,
): Promise<void> {
  const sender = new Sender(url, CONNECTIONS);
  const status = new StatusLine(io);
  const all: Promise<void>[] = [];
  let failure: unknown = null;
  try {
    for (const request of requests) {
      if (io.signal.aborted) throw unfinished();
      await sender.room(CONNECTIONS * 4);
      const sent = sender.send(request).then((answer) => answers.count(request, answer));
      all.push(sent.catch((error: unknown) => void (failure ??= error)));
      status.show(() => `answered   ${answers.sent}`);
    }
    await Promise.all(all);
    for (const request of answers.repeats) answers.count(request, await sender.send(request));
  } finally {
    status.clear();
    await sender.close();
  }
  if (failure !== null) throw failure;
}

async function untilDelivered(operations: Operations, signal: AbortSignal): Promise<void> {
  for (;;) {
    const { journal } = await operations.status();
    if (journal.cursors.every(({ backlog }) => backlog === 0)) return;
    if (signal.aborted) throw unfinished();
    await wait(20);
  }
}

function unfinished(): MillraceError {
  return new MillraceError('interrupted', 'nothing is kept of an unfinished demo');
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
    `delivered    ${delivered}   in ${plural(files, 'file')} below ${archive}`,
    `history      ${history.meals} meals with ${history.meal_items} foods of ${history.users} users in ${history.tables}`,
    `             plus ${history.events} events that the stand-in of the service signed and sent`,
    ...problems.map((problem) => `problem      ${problem}`),
    ok ? 'The files hold every accepted event once, byte for byte.' : 'The counts do not add up.',
  ].join('\n');
}
