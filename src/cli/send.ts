import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { isDeliveryId } from '../core/delivery-id.ts';
import { EXIT, MillraceError, messageOf } from '../core/errors.ts';
import { splitSecrets } from '../core/secrets.ts';
import { jsonOrSame } from '../lib/parsed.ts';
import { parseDuration } from '../lib/units.ts';
import { visible } from '../lib/visible.ts';
import { madeUpEvent, newDeliveryId } from '../sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../receive/verify/sign-standard-webhooks.ts';
import { hasColours, styled, note, print, usageError, type Io } from './io.ts';
import { CONFIG, DEV, receiverConfigIfAny, receiverUrlOf } from './config-options.ts';
import { readFixture } from './fixture/file.ts';
import { commandOf, httpUrl, type OptionsOf, readAs, readBy, wholeNumber } from './options.ts';
import { Sender, type Answer } from './sender.ts';

const HELP = `
Examples:
  millrace send
  millrace send --type lab_report.parsing_job.created --count 100
  MILLRACE_SECRET=whsec_… millrace send --file event.json --id msg_made_up_1 --url https://hooks.example.com/webhooks

Signs by the standard-webhooks scheme with MILLRACE_SECRET, or with the first of signing.secrets, which has priority with --config,
and posts to the receiver of the config. Without --file it makes up events. An event without an answer, or with 429 or 503, is sent
again under the same id for --retry; then the command stops, and says how to send the rest. Prints one line per answer: as text on a
terminal, elsewhere as JSON with the receipt, for \`millrace receipt verify\`.

Exit codes: 0 every event was accepted, or is a duplicate, 1 some were refused or quarantined, 3 it stopped before the last one.`;

const OPTIONS = {
  '--url <url>': readBy(httpUrl, 'address of the receiver (default: that of the config)'),
  '--type <type>': 'event type of the made-up events (default: the documented types in turn)',
  '--file <file>': 'send this file as the body, unchanged',
  '--fixture <file>': 'send the event in this file of `millrace fixture`',
  '--id <id>': 'delivery id (default: a new one for each event)',
  '--count <n>': readBy(wholeNumber(1), 'how many', '1'),
  '--retry <duration>': readBy(parseDuration, 'how long an event is sent again', '5s'),
  ...CONFIG,
  '--json': 'print answers and errors as JSON on a terminal too',
};
type Options = OptionsOf<typeof OPTIONS>;

const USUAL_URL = 'http://127.0.0.1:8080/webhooks';
/** Milliseconds before the first retry, and at most. */
const PAUSE_MS = { first: 100, most: 2000 };

export function sendCommand(io: Io): Command {
  return commandOf('send', OPTIONS, HELP)
    .description('sign events and post them to a receiver')
    .action(async (options: Options) => {
      const { url, secret } = targetOf(options, io);
      const { count } = options;
      const isForPerson = io.stdout.isTTY === true && options.json !== true;
      if (options.file !== undefined && options.fixture !== undefined)
        throw usageError('give --file or --fixture, not both');
      if (options.id !== undefined && !isDeliveryId(options.id))
        throw usageError('--id must be 1 to 256 visible ASCII characters');
      const sender = new Sender(url, Math.min(count, 16));
      const stop = new AbortController();
      const signal = AbortSignal.any([io.signal, stop.signal]);
      const answerOf = repeating(options.retry, signal);
      let [answered, refused, unsigned, aside] = [0, 0, 0, 0];
      let failure: unknown = null;
      try {
        const all: Promise<void>[] = [];
        for (let n = 0; n < count && !signal.aborted; n += 1) {
          await sender.room(64);
          const { id, body } = eventOf(options, n);
          const post = (): Promise<Answer> =>
            sender.send({ headers: signStandardWebhooks(secret, id, Date.now(), body), body });
          const sent = answerOf(post).then(({ status, receipt, body: answer }) => {
            answered += 1;
            if (status >= 300) refused += 1;
            if (status === 401) unsigned += 1;
            const kept = receipt === null ? {} : { receipt, body_sha256: hash('sha256', body, 'hex') };
            const line = { id, http: status, answer: jsonOrSame(answer), ...kept };
            if (isQuarantined(line)) aside += 1;
            if (isForPerson) io.stdout.write(`${rendered(line, hasColours(io.stdout, io.env))}\n`);
            else print(io, JSON.stringify(line));
          });
          all.push(
            sent.catch((error: unknown) => {
              failure ??= error;
              stop.abort();
            }),
          );
        }
        await Promise.all(all);
      } finally {
        await sender.close();
      }
      if (answered === 0 && failure !== null && !io.signal.aborted) throw failure;
      if (refused > 0) note(io, `${refused} of ${count} were not accepted`);
      if (unsigned > 0)
        note(io, `401: the receiver at ${url} has another secret, or another receiver has that port`);
      if (aside > 0) note(io, `${aside} of ${count} were quarantined: \`millrace quarantine list\` says why`);
      if (answered === count) return io.setExit(refused + aside === 0 ? EXIT.done : EXIT.failed);
      if (failure !== null && !io.signal.aborted) note(io, messageOf(failure));
      const rest = count - answered;
      note(
        io,
        `${answered} of ${count} were answered; send the rest with the same options and --count ${rest}`,
      );
      io.setExit(EXIT.partial);
    });
}

/** The URL of the receiver, and the secret to sign with. */
function targetOf(options: Options, io: Io): { readonly url: string; readonly secret: string } {
  const [own] = splitSecrets(io.env['MILLRACE_SECRET'] ?? '');
  if (options.url !== undefined && own !== undefined && options.config === undefined)
    return { url: options.url, secret: own };
  const loaded = receiverConfigIfAny(options, io);
  const config = loaded?.config;
  if (config !== undefined && config.signing.scheme !== 'standard-webhooks')
    throw usageError(
      `send signs by standard-webhooks, and signing.scheme of the config is ${config.signing.scheme}`,
    );
  const [first] = config?.signing.secrets ?? [];
  // MILLRACE_SECRET is for the usual config; a config that was named, and that of `dev`, has its own.
  const secret = options.config === undefined && loaded?.file !== DEV ? (own ?? first) : (first ?? own);
  if (secret === undefined)
    throw new MillraceError('secret_missing', 'set MILLRACE_SECRET to the secret that the receiver has');
  return { url: options.url ?? (config === undefined ? USUAL_URL : receiverUrlOf(config)), secret };
}

/**
 * A function that repeats a request until it gets a final answer, or until no request has got one for `ms` milliseconds. It throws
 * the error of the last try.
 */
function repeating(ms: number, signal: AbortSignal) {
  let end = performance.now() + ms;
  return async (post: () => Promise<Answer>): Promise<Answer> => {
    for (let pause = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.most)) {
      const isOver = (): boolean => performance.now() + pause > end || signal.aborted;
      try {
        const answer = await post();
        const isFinal = answer.status !== 429 && answer.status !== 503;
        if (isFinal) end = performance.now() + ms;
        if (isFinal || isOver()) return answer;
      } catch (error) {
        if (isOver()) throw error;
      }
      await wait(pause, undefined, { signal });
    }
  };
}

function eventOf(options: Options, n: number): { id: string; body: Buffer } {
  if (options.fixture !== undefined)
    return { id: options.id ?? newDeliveryId(), body: Buffer.from(readFixture(options.fixture).body) };
  if (options.file === undefined) {
    const event = options.type === undefined ? madeUpEvent(n) : madeUpEvent(n, options.type);
    return { id: options.id ?? event.id, body: event.body };
  }
  return {
    id: options.id ?? newDeliveryId(),
    body: readAs('--file', options.file, (file) => readFileSync(file)),
  };
}

interface Line {
  readonly id: string;
  readonly http: number;
  readonly answer: unknown;
  readonly receipt?: unknown;
}

/** Quarantined events are answered with 2xx, so that the sender does not repeat them. */
function isQuarantined({ http, answer }: Line): boolean {
  return http < 300 && Object(answer).status === 'quarantined';
}

/** One answer as text, without control characters. */
function rendered({ id, http, answer, receipt }: Line, isColoured: boolean): string {
  const { status, code, detail } = Object(answer) as Readonly<Record<string, unknown>>;
  const style = http >= 300 ? 'red' : status === 'accepted' ? 'green' : 'yellow';
  const words = [http < 300 ? status : null, code, detail].filter((word) => typeof word === 'string');
  const said = styled(style, visible(words.join(': ')), isColoured);
  return [String(http), said, visible(id), ...(receipt === undefined ? [] : ['with a receipt'])].join('  ');
}
