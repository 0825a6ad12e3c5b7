import { resolve } from 'node:path';
import { Command } from 'commander';
import { MillraceError } from '../../core/errors.ts';
import { parseDuration } from '../../lib/units.ts';
import { madeUpEvent } from '../../sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../verify/sign-standard-webhooks.ts';
import { startDev, type DevApp } from './app.ts';
import { note, print, type Io } from '../io.ts';

const HELP = `
Examples:
  millrace dev
  millrace dev --every 1s --users 500
  millrace dev --folder /tmp/millrace-dev --port 0 --every 0 --json

A receiver with a new secret, a stand-in of the service with made-up users that sends it signed events, an archive whose
files are finished every 10 seconds, tables for completed pulls, and the console. A port that is not given is the usual
one (8080, 9090, 8090), or any other when that is taken. Everything lies below --folder and is there again next time.
Prints where everything is, on stdout, and a request to try. Ctrl-C ends it: what was received is flushed first.`;

interface Options {
  readonly folder: string;
  readonly port?: string;
  readonly adminPort?: string;
  readonly servicePort?: string;
  readonly users: string;
  readonly every: string;
  readonly json?: boolean;
}

const FLUSH_DEADLINE = 10_000;

/** `millrace dev`: everything at once on this machine, until a signal ends it. */
export function devCommand(io: Io): Command {
  return new Command('dev')
    .description('receiver, files, console and a stand-in of the service, all on this machine')
    .option('--folder <dir>', 'where everything is kept', './data/dev')
    .option('--port <n>', 'port of the receiver; 0 takes a free one')
    .option('--admin-port <n>', 'port of the console and the health checks')
    .option('--service-port <n>', 'port of the stand-in')
    .option('--users <n>', 'made-up users of the stand-in', '100')
    .option('--every <duration>', 'time between two events that it sends; 0 sends none', '5s')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      const dev = await startDev(io, {
        folder: resolve(options.folder),
        port: portOf('--port', options.port),
        adminPort: portOf('--admin-port', options.adminPort),
        servicePort: portOf('--service-port', options.servicePort),
        users: wholeNumber('--users', options.users, 1_000_000),
        every: durationOf(options.every),
      });
      try {
        print(io, options.json === true ? JSON.stringify(describe(dev)) : render(dev, options.every));
        await Promise.race([dev.failed, aborted(io.signal)]);
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

function render(dev: DevApp, every: string): string {
  const shown = describe(dev);
  const facts = Object.entries(shown).map(([name, value]) => `${name.padEnd(9)} ${value}`);
  const sends = durationOf(every) === 0 ? 'nothing by itself' : `a signed event every ${every}`;
  return [
    ...facts,
    '',
    `The service sends ${sends}. One of your own, signed for the next five minutes:`,
    '',
    curl(dev),
    '',
    'More, from another shell:',
    '',
    `  MILLRACE_SECRET=${dev.secret} millrace send --url ${dev.app.url} --count 10`,
    `  millrace status --config ${word(dev.config)}`,
    `  millrace console --config ${word(dev.config)}    a new link to the console; the one above works once`,
    `  curl -H 'x-service-api-key: ${dev.sandbox.apiKey}' '${dev.sandbox.url}/v2/summary/meal/${shown['user_id']}?start_date=2026-01-01&end_date=2026-01-02'`,
  ].join('\n');
}

/** A whole request that the receiver takes. */
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

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    signal.addEventListener('abort', () => done(), { once: true });
  });
}

function portOf(option: string, text: string | undefined): number | null {
  return text === undefined ? null : wholeNumber(option, text, 65_535);
}

function wholeNumber(option: string, text: string, most: number): number {
  if (/^\d{1,9}$/.test(text) && Number(text) <= most) return Number(text);
  throw new MillraceError('usage', `${option} ${text} is not a whole number from 0 to ${most}`);
}

function durationOf(text: string): number {
  try {
    return text === '0' ? 0 : parseDuration(text);
  } catch (error) {
    throw new MillraceError('usage', `--every ${text} is not a duration such as 5s`, { cause: error });
  }
}
