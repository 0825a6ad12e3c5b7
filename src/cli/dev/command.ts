import { resolve } from 'node:path';
import type { Command } from 'commander';
import { actAsOwnerOf } from '../../core/act-as-owner.ts';
import { untilAborted } from '../../lib/abort.ts';
import { formatDuration, parseDuration } from '../../lib/units.ts';
import { madeUpEvent } from '../../sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../receive/verify/sign-standard-webhooks.ts';
import { startDev, type DevApp } from './app.ts';
import { note, printResult, type Io } from '../io.ts';
import { commandOf, type OptionsOf, readBy, textOr, wholeNumber } from '../options.ts';
import { programName } from '../program-name.ts';
import { DEV } from '../config-options.ts';

const HELP = `
Examples:
  millrace dev
  millrace dev --every 1s --users 500
  millrace dev --folder /tmp/millrace-dev --port 0 --every 0 --json

Starts a receiver with a new secret, a stand-in of the service that sends signed events of made-up users, an archive whose
files are closed every 10 seconds, tables of completed pulls, and the console. The ports are 8080, 9090 and 8090, or free ones
if these are taken. All data is in --folder and is kept for the next start. Prints all addresses, and a request to try. Ctrl-C
flushes and stops.`;

const anyPort = wholeNumber(0, 65_535);
const OPTIONS = {
  '--folder <dir>': textOr('./data/dev', 'folder of all its data'),
  '--port <n>': readBy(anyPort, 'port of the receiver; 0 takes a free one'),
  '--admin-port <n>': readBy(anyPort, 'port of the console and the health checks'),
  '--service-port <n>': readBy(anyPort, 'port of the stand-in'),
  '--users <n>': readBy(wholeNumber(0, 1_000_000), 'made-up users of the stand-in', '100'),
  '--every <duration>': readBy(
    parseDuration,
    'time between two events from the stand-in; 0 sends none',
    '2s',
  ),
  '--json': 'print one JSON object',
};
type Options = OptionsOf<typeof OPTIONS>;

const FLUSH_DEADLINE = 10_000;

export function devCommand(io: Io): Command {
  return commandOf('dev', OPTIONS, HELP)
    .description('receiver, files, console and a stand-in of the service, all on this machine')
    .action(async (options: Options) => {
      const { folder, every } = options;
      actAsOwnerOf(folder);
      const dev = await startDev(io, { ...options, folder: resolve(folder) });
      try {
        printResult(io, options, describe(dev), render(dev, every, io));
        await Promise.race([dev.failed, untilAborted(io.signal)]);
        note(io, 'stopping');
      } finally {
        await dev.stop(AbortSignal.timeout(FLUSH_DEADLINE));
      }
    });
}

function describe({ app, sandbox, secret, config }: DevApp): Readonly<Record<string, string | null>> {
  return {
    receiver: app.url,
    console: app.consoleLink(),
    service: sandbox.url,
    api_key: sandbox.apiKey,
    user_id: sandbox.state.users.list(sandbox.teamId)[0]?.id ?? null,
    secret,
    config,
    archive: config.replace(/millrace\.yaml$/, 'archive'),
  };
}

function render(dev: DevApp, every: number, io: Io): string {
  const shown = describe(dev);
  const facts = Object.entries(shown).map(([name, value]) => `${name.padEnd(9)} ${value}`);
  const program = programName(process.cwd(), io);
  // Other commands find the default folder without --config.
  const named = resolve(dev.config) === resolve(DEV) ? '' : ` --config ${word(dev.config)}`;
  const sends = every === 0 ? 'no events of its own' : `a signed event every ${formatDuration(every)}`;
  return [
    ...facts,
    '',
    `The service sends ${sends}. One of your own, signed for the next five minutes:`,
    '',
    curl(dev),
    '',
    'More, from another shell:',
    '',
    ...['tail', 'send --count 10', 'flush', 'status', 'console'].map(
      (command) => `  ${program} ${command}${named}`,
    ),
    `  curl -H 'x-service-api-key: ${dev.sandbox.apiKey}' '${dev.sandbox.url}/v2/summary/meal/${shown['user_id']}?start_date=2026-01-01&end_date=2026-01-02'`,
  ].join('\n');
}

/** A signed request for the shell. */
function curl({ app, secret }: DevApp): string {
  const { id, body } = madeUpEvent(0, 'lab_report.parsing_job.created');
  const headers = Object.entries(signStandardWebhooks(secret, id, Date.now(), body));
  return [
    `  curl -i ${app.url} -H 'content-type: application/json'`,
    ...headers.map(([name, value]) => `    -H ${word(`${name}: ${value}`)}`),
    `    --data-raw ${word(body.toString('utf8'))}`,
  ].join(' \\\n');
}

/** Quoted for a shell where it needs to be. */
function word(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
