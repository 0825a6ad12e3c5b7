import type { Command } from 'commander';
import PQueue from 'p-queue';
import { request } from 'undici';
import { messageOf, MillraceError } from '../core/errors.ts';
import { DEVELOPMENT_SECRET, splitSecrets } from '../core/secrets.ts';
import type { TailLine, TailRequest } from '../core/tail.ts';
import { visible, visibleLines } from '../lib/visible.ts';
import { signWith } from '../receive/verify/sign-standard-webhooks.ts';
import { parseStandardSecret, type StandardSecret } from '../receive/verify/standard-secret.ts';
import { CONFIG, receiverConfigOf, receiverUrlOf } from './config-options.ts';
import { hasColours, type Io, note, styled, usageError } from './io.ts';
import { commandOf, httpUrl, type OptionsOf, readBy, required, wholeNumber } from './options.ts';
import { DELIVERY_FILTER, follow, writeLine } from './tail.ts';

const HELP = `
Examples:
  millrace listen --forward http://127.0.0.1:3000/webhooks
  millrace listen --forward http://localhost:3000/hooks --type labtest. --json

Forwards each delivery that the running receiver accepts from now on, and each duplicate, to a handler on this machine: the same
bytes and id, signed by the standard-webhooks scheme with the development secret that is printed at the start, or with the secret in
the variable of --secret-env. Prints the handler's status and latency. The receiver and its sinks are not affected, and a refused
delivery is not sent again. A handler that is too slow misses deliveries; a line says how many. After a lost connection at most the
newest 100 deliveries follow. Bodies are health data: the handler must be on this machine or behind https, and the audit log notes
each event first. Ends on Ctrl-C, or after --count deliveries.`;

/** Concurrent requests to the handler, and requests that wait before reading stops. */
const AT_ONCE = 4;
const MOST_WAITING = 100;
/** The service waits as long for an answer. */
const TIMEOUT_MS = 15_000;

const OPTIONS = {
  '--forward <url>': required(readBy(handlerUrl, 'the handler')),
  ...DELIVERY_FILTER,
  '--secret-env <name>': 'the variable with the secret to sign with',
  '--count <n>': readBy(wholeNumber(1), 'end after this many deliveries'),
  ...CONFIG,
  '--json': 'print a line of JSON for each',
};
type Options = OptionsOf<typeof OPTIONS>;

export function listenCommand(io: Io): Command {
  return commandOf('listen', OPTIONS, HELP)
    .description('also send each delivery to a handler on this machine, signed again')
    .action(async (options: Options) => {
      const { forward, type, user, count = Infinity } = options;
      const secret = secretOf(options, io);
      refuseLoop(forward, receiverUrlOf(receiverConfigOf(options, io, true).config));
      const outcomes: TailRequest['outcomes'] = ['accepted', 'duplicate'];
      const wanted = { types: type, users: user, sinks: [], outcomes, bodies: true, since: null };
      if (options.secretEnv === undefined) note(io, `signing with ${DEVELOPMENT_SECRET}`);
      io.whenOutputIsLost('end');
      const isColoured = hasColours(io.stdout, io.env);
      const queue = new PQueue({ concurrency: AT_ONCE });
      let left = count;
      for await (const line of follow(io, options, wanted)) {
        if ('notice' in line) {
          if (line.notice === 'older') note(io, 'deliveries were missed while the connection was lost');
          else note(io, `${line.lines ?? 'some'} deliveries were missed: the handler is too slow`);
          continue;
        }
        if (line.body_base64 === undefined) {
          note(io, `${line.id ?? 'a delivery'} was missed: the receiver no longer has its body`);
          continue;
        }
        await queue.onSizeLessThan(MOST_WAITING);
        void queue.add(async () => {
          const done = await post(forward, secret, line);
          const text = options.json === true ? visibleLines(JSON.stringify(done)) : render(done, isColoured);
          await writeLine(io, text);
        });
        left -= 1;
        if (left <= 0) break;
      }
      await queue.onIdle();
    });
}

/** The handler's answer to a delivery; without one the status is null, and the error says why. */
async function post(url: string, secret: StandardSecret, line: TailLine) {
  const { id = '', event_type = '', body_base64 = '' } = line;
  const body = Buffer.from(body_base64, 'base64');
  const headers = {
    'content-type': 'application/json',
    ...signWith([secret], id, Date.now(), body),
  };
  const began = performance.now();
  const ms = (): number => Math.round(performance.now() - began);
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const answer = await request(url, { method: 'POST', headers, body, signal });
    await answer.body.text();
    return { id, event_type, status: answer.statusCode, ms: ms() };
  } catch (error) {
    return { id, event_type, status: null, ms: ms(), error: messageOf(error) };
  }
}

function render(forwarded: Awaited<ReturnType<typeof post>>, isColoured: boolean): string {
  const { id, event_type, status, ms, error } = forwarded;
  const isGood = status !== null && status < 300;
  return [
    styled(isGood ? 'green' : 'red', (status === null ? 'failed' : String(status)).padEnd(6), isColoured),
    `${ms} ms`.padStart(8),
    visible(event_type),
    styled('dim', visible(id), isColoured),
    ...(error === undefined ? [] : [visible(error)]),
  ].join('  ');
}

function isHere(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

/** @throws MillraceError usage for the receiver's own address: each delivery would be forwarded again as a duplicate */
function refuseLoop(forward: string, receiver: string): void {
  const [to, own] = [new URL(forward), new URL(receiver)];
  const isSameHost = to.hostname === own.hostname || (isHere(to.hostname) && isHere(own.hostname));
  if (isSameHost && to.protocol === own.protocol && to.port === own.port)
    throw usageError(
      `--forward ${forward} leads back to the receiver itself (${receiver}): name the address of a handler`,
    );
}

function handlerUrl(text: string): string {
  const { protocol, hostname } = new URL(httpUrl(text));
  if (isHere(hostname) || protocol === 'https:') return text;
  throw new TypeError('must be on this machine, or https: events are health data');
}

/** The secret of --secret-env, else the development secret. @throws MillraceError that does not contain the secret */
function secretOf({ secretEnv }: Options, io: Io): StandardSecret {
  const [secret = ''] =
    secretEnv === undefined ? [DEVELOPMENT_SECRET] : splitSecrets(io.env[secretEnv] ?? '');
  const name = `--secret-env ${secretEnv}`;
  if (secret === '') throw new MillraceError('secret_missing', `${name}: the variable is not set`);
  const parsed = parseStandardSecret(secret, name);
  if (parsed.version === 'v1a' && parsed.sign === null)
    throw new MillraceError('config_invalid', `${name} is a whpk_ key, which can verify, not sign`);
  return parsed;
}
