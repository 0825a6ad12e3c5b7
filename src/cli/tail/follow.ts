import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError, messageOf } from '../../core/errors.ts';
import type { TailLine, TailNotice, TailRequest } from '../../core/tail.ts';
import { AdminClient } from '../admin-client.ts';
import type { ConfigFlags } from '../config-options.ts';
import { note, type Io } from '../io.ts';
import { receiverConfigOf } from '../receiver-config.ts';

/** Milliseconds before the next try, and at most. */
const RETRY = { first: 250, most: 5000 };
/** Lines that can come a second time after a connection was lost: as many as the receiver remembers. */
const REMEMBERED = 200;

/**
 * What the running receiver tells, across reloads and restarts, until the signal of `io` aborts. Lines that it lost, or left out, are
 * noted and passed on as well.
 * @throws MillraceError when there is no receiver to begin with, and when it refuses
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
      // Anew each time: a receiver that was started again has another address and another token.
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
      const pause = Math.min(RETRY.most, RETRY.first * 2 ** (failures - 1));
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
