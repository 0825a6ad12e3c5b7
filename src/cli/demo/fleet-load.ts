import { hash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { MillraceError } from '../../core/errors.ts';
import { madeUpEvent } from '../../sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../verify/sign-standard-webhooks.ts';
import { Sender } from '../sender.ts';
import { unfinished } from './child.ts';

/** What the sender knows of an event that was answered with 2xx: its own list, from no replica. */
export interface Sent {
  readonly user: number;
  /** Its place among the user's own, counted from 0. */
  readonly number: number;
  /** SHA-256 of its bytes. */
  readonly body: string;
  /** It was begun before the kill. */
  readonly before: boolean;
}

export interface Load {
  /** By id. */
  readonly sent: ReadonlyMap<string, Sent>;
  /** Tries without a 2xx, each sent again to the other replica. */
  readonly unanswered: number;
  /** Answered ones, sent once more to the other replica. */
  readonly repeated: number;
}

/** As many as there are users in made-up events: one event of each is under way at a time, so that their order is known. */
export const USERS = 50;
/** One answered event in this many comes again. */
const ANSWERED_FOR_ONE_REPEAT = 20;
/** Milliseconds an event is tried for, and between two tries. */
const PATIENCE = 60_000;
const PAUSE = 50;

/**
 * Sends events as a sender behind a load balancer does: to both in turn, and what one does not answer with 2xx to the other,
 * under the same id.
 * @param kill called once, amid the load; resolves when the first replica is gone
 */
export async function sendLoad(
  urls: readonly [string, string],
  { events, secret, signal }: { events: number; secret: string; signal: AbortSignal },
  kill: (answered: number) => Promise<void>,
): Promise<Load> {
  const senders = urls.map((url) => new Sender(url, USERS));
  const sent = new Map<string, Sent>();
  let [unanswered, repeated, killed] = [0, 0, false];
  const killing: Promise<void>[] = [];
  const post = async (id: string, body: Buffer, to: number): Promise<void> => {
    const end = performance.now() + PATIENCE;
    for (let at = to; ; at = 1 - at) {
      if (signal.aborted) throw unfinished();
      const headers = signStandardWebhooks(secret, id, Date.now(), body);
      const said = await senders[killed ? 1 : at]?.send({ headers, body }).then(
        ({ status }) => String(status),
        (error: unknown) => String(error),
      );
      if (said === '202' || said === '200') return;
      unanswered += 1;
      if (performance.now() > end)
        throw new MillraceError('receiver_unreachable', `${id}: not taken in a minute: ${said}`);
      await wait(PAUSE);
    }
  };
  const lane = async (user: number): Promise<void> => {
    for (let n = user; n < events; n += USERS) {
      const before = killing.length === 0;
      const { id, body } = madeUpEvent(n);
      const number = Math.floor(n / USERS);
      const to = (user + number) % 2;
      await post(id, body, to);
      sent.set(id, { user, number, body: hash('sha256', body, 'hex'), before });
      if (sent.size >= events / 2 && killing.length === 0)
        killing.push(kill(sent.size).then(() => void (killed = true)));
      if (sent.size % ANSWERED_FOR_ONE_REPEAT !== 0) continue;
      await post(id, body, 1 - to);
      repeated += 1;
    }
  };
  try {
    await Promise.all(Array.from({ length: USERS }, (_, user) => lane(user)));
    await Promise.all(killing);
    return { sent, unanswered, repeated };
  } finally {
    for (const sender of senders) await sender.close().catch(() => undefined);
  }
}
