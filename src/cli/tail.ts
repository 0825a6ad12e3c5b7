import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { messageOf, MillraceError } from '../core/errors.ts';
import {
  TAIL_OUTCOMES,
  type TailLine,
  type TailNotice,
  type TailOutcome,
  type TailRequest,
} from '../core/tail.ts';
import { aboutBytes, parseDuration } from '../lib/units.ts';
import { visible, visibleLines } from '../lib/visible.ts';
import { AdminClient } from './admin-client.ts';
import { CONFIG, type ConfigFlags, receiverConfigOf } from './config-options.ts';
import { hasColours, type Io, note, type Style, styled } from './io.ts';
import { commandOf, instant, type OptionsOf, readBy, repeated, special, wholeNumber } from './options.ts';

const HELP = `
Examples:
  millrace tail
  millrace tail --type labtest. --sink hubs --outcome dead
  millrace tail --user 6b0e9a52-0000-4000-8000-0000000000aa --bodies
  millrace tail --json --since 10m --count 1 | jq .id

Prints a line for each delivery to the running receiver (accepted, duplicate, quarantined, erased or refused) and for each attempt at
a sink (delivered, retried or dead). A refused delivery shows only its code. --since begins with earlier deliveries, at most the
newest 100. --bodies shows health data, and the audit log notes each event. A reader that is too slow loses lines; stderr says how
many. Connects again after a restart of the receiver. Ends on Ctrl-C, or after --count lines.`;

/** Which deliveries are shown, or forwarded by `listen`. */
export const DELIVERY_FILTER = {
  '--type <prefix>': repeated('only event types with this prefix'),
  '--user <id>': repeated('only this user_id or client_user_id'),
};
const OPTIONS = {
  ...DELIVERY_FILTER,
  '--sink <name>': repeated('only deliveries to this sink'),
  '--outcome <names...>': special<TailRequest['outcomes'] | undefined>('only these outcomes', (option) =>
    option.choices(TAIL_OUTCOMES),
  ),
  '--bodies': 'show bodies too; noted in the audit log',
  '--since <time>': readBy(sinceOf, 'begin with deliveries since then: 10m, or a time'),
  '--count <n>': readBy(wholeNumber(1), 'end after this many lines'),
  ...CONFIG,
  '--json': 'print a line of JSON for each',
};
type Options = OptionsOf<typeof OPTIONS>;

export function tailCommand(io: Io): Command {
  return commandOf('tail', OPTIONS, HELP)
    .description('show deliveries as they arrive and reach the sinks, live')
    .action(async (options: Options) => {
      const { type, user, sink, outcome = [], bodies = false, since = null } = options;
      const request = { types: type, users: user, sinks: sink, outcomes: outcome, bodies, since };
      io.whenOutputIsLost('end');
      const isColoured = hasColours(io.stdout, io.env);
      let left = options.count ?? Infinity;
      for await (const line of follow(io, options, request)) {
        if (!('at' in line)) {
          if (line.notice === 'lost') note(io, `too slow: ${line.lines} lines were left out`);
          if (line.notice === 'older')
            note(io, 'there were earlier deliveries since then, which are not remembered');
          continue;
        }
        const text = options.json === true ? visibleLines(JSON.stringify(line)) : render(line, isColoured);
        await writeLine(io, text);
        left -= 1;
        if (left <= 0) break;
      }
    });
}

function sinceOf(text: string): number {
  return /^\d+[a-z]+$/.test(text) ? Date.now() - parseDuration(text) : instant(text);
}

/** Milliseconds before the first retry, and at most. */
const RETRY_MS = { first: 250, most: 5000 };
/** Lines that can come again after a lost connection: as many as the receiver remembers. */
const REMEMBERED = 200;

/**
 * Lines and notices of the running receiver, across restarts, until the signal of `io` aborts.
 * @throws MillraceError when no receiver runs at the beginning, and when it refuses
 */
export async function* follow(
  io: Io,
  flags: ConfigFlags,
  request: TailRequest,
): AsyncGenerator<TailLine | TailNotice> {
  const { signal } = io;
  let { since } = request;
  let isConnected = false;
  let failures = 0;
  const seen = new Set<string>();
  while (!signal.aborted) {
    try {
      // A restarted receiver has another token, and can have another address.
      const client = AdminClient.running(receiverConfigOf(flags, io, isConnected).config);
      for await (const line of client.lines<TailLine | TailNotice>('/tail', { ...request, since }, signal)) {
        if (failures > 0) note(io, 'connected again');
        isConnected = true;
        failures = 0;
        since ??= Date.now();
        if (line === null) continue;
        if ('at' in line) {
          if (isRepeated(line, seen)) continue;
          since = Math.max(since, Date.parse(line.at));
        }
        yield line;
        if ('notice' in line && line.notice === 'failed')
          throw new MillraceError('audit_unwritable', line.detail ?? '');
      }
    } catch (error) {
      if (signal.aborted) return;
      const isLasting = error instanceof MillraceError && error.code !== 'receiver_unreachable';
      if (!isConnected || isLasting) throw error;
      if (failures === 0) note(io, `${messageOf(error)}; trying again`);
      failures += 1;
      const pause = Math.min(RETRY_MS.most, RETRY_MS.first * 2 ** (failures - 1));
      await wait(pause, undefined, { signal }).catch(() => undefined);
    }
  }
}

function isRepeated({ at, outcome, id, sink }: TailLine, seen: Set<string>): boolean {
  if (id === undefined || sink !== undefined) return false;
  const key = `${at} ${outcome} ${id}`;
  if (seen.has(key)) return true;
  seen.add(key);
  const [oldest] = seen;
  if (seen.size > REMEMBERED && oldest !== undefined) seen.delete(oldest);
  return false;
}

const STYLES: Readonly<Record<TailOutcome, Style>> = {
  accepted: 'green',
  delivered: 'green',
  duplicate: 'cyan',
  erased: 'cyan',
  quarantined: 'yellow',
  retried: 'yellow',
  refused: 'red',
  dead: 'red',
};
const WIDTH = 11;

/** Writes a line without control characters. Waits for a slow reader: then the receiver counts the lines it leaves out. */
export async function writeLine(io: Io, text: string): Promise<void> {
  if (!io.stdout.write(`${text}\n`))
    await once(io.stdout, 'drain', { signal: io.signal }).catch(() => undefined);
}

/** One line of text; a body follows on lines below. */
function render(line: TailLine, isColoured: boolean): string {
  const { at, outcome, id, event_type, user_id, bytes, sink, destination, ms, code, reason } = line;
  const dim = (text: string): string => styled('dim', visible(text), isColoured);
  const target = destination === null || destination === undefined ? sink : `${sink}:${destination}`;
  const parts = [
    dim(at.slice(11, 23)),
    styled(STYLES[outcome], outcome.padEnd(WIDTH), isColoured),
    ...(event_type === undefined ? [] : [visible(event_type)]),
    ...(target === undefined ? [] : [`→ ${visible(target)}`]),
    ...(ms === undefined ? [] : [`${ms} ms`]),
    ...(code === undefined ? [] : [visible(code)]),
    ...(reason === undefined ? [] : [visible(reason)]),
    ...(user_id === undefined || user_id === null || sink !== undefined ? [] : [`user ${visible(user_id)}`]),
    ...(bytes === undefined || sink !== undefined ? [] : [dim(aboutBytes(bytes))]),
    ...(id === undefined ? [] : [dim(id)]),
  ];
  return [parts.join('  '), ...bodyOf(line)].join('\n');
}

function bodyOf({ body_base64 }: TailLine): string[] {
  if (body_base64 === undefined) return [];
  return [`    ${visibleLines(Buffer.from(body_base64, 'base64').toString('utf8'))}`];
}
