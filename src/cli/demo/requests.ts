import { hash } from 'node:crypto';
import { madeUpEvent, newDeliveryId } from '../../sandbox/made-up-events.ts';
import { signStandardWebhooks } from '../../receive/verify/sign-standard-webhooks.ts';
import type { Answer, Request } from '../sender.ts';

export type Expected = 'accepted' | 'duplicate' | 'quarantined' | 'refused';

export interface DemoRequest extends Request {
  readonly id: string;
  readonly expected: Expected;
}

/** Good requests for one bad request of each kind. */
const GOOD_FOR_ONE_BAD = 50;
/** Accepted events for one that is sent a second time. */
const GOOD_FOR_ONE_REPEAT = 20;
/** Largest body that the demo's receiver accepts. */
export const DEMO_BODY_LIMIT = 64 * 1024;
const STALE_MS = 3_600_000;

/** N good requests, with bad ones of every kind among them. */
export function* demoRequests(events: number, secret: string): Generator<DemoRequest> {
  for (let n = 0; n < events; n += 1) {
    yield good(n, secret);
    if (n % GOOD_FOR_ONE_BAD === 0) yield* bad(n, secret);
  }
}

function good(n: number, secret: string): DemoRequest {
  const { id, body } = madeUpEvent(n);
  return { id, body, headers: signStandardWebhooks(secret, id, Date.now(), body), expected: 'accepted' };
}

function* bad(n: number, secret: string): Generator<DemoRequest> {
  const { body } = madeUpEvent(n);
  const signed = (of: Buffer, expected: Expected, at = Date.now()): DemoRequest => {
    const id = newDeliveryId();
    return { id, body: of, headers: signStandardWebhooks(secret, id, at, of), expected };
  };
  const forged = signed(body, 'refused');
  yield { ...forged, body: Buffer.concat([body, Buffer.from(' ')]) };
  yield { ...forged, headers: {} };
  yield signed(body, 'refused', Date.now() - STALE_MS);
  yield signed(Buffer.alloc(DEMO_BODY_LIMIT + 1, 0x20), 'refused');
  const noTeam = JSON.parse(body.toString()) as Record<string, unknown>;
  delete noTeam['team_id'];
  yield signed(Buffer.from(JSON.stringify(noTeam)), 'quarantined');
  yield signed(Buffer.from('{"event_type": not JSON'), 'quarantined');
}

/** Counts the answers, and remembers the accepted events. */
export class DemoAnswers {
  sent = 0;
  readonly counts: Record<Expected, number> = { accepted: 0, duplicate: 0, quarantined: 0, refused: 0 };
  /** SHA-256 of the body by delivery id, for each accepted event. */
  readonly bodies = new Map<string, string>();
  readonly problems: string[] = [];
  /** Accepted requests to send a second time. */
  readonly repeats: DemoRequest[] = [];

  count(request: DemoRequest, answer: Answer): void {
    this.sent += 1;
    const got = outcomeOf(answer);
    if (got !== null) this.counts[got] += 1;
    if (got !== request.expected) {
      this.problems.push(
        `${request.id}: expected ${request.expected}, got ${answer.status} ${answer.body.slice(0, 100)}`,
      );
    }
    if (got !== 'accepted') return;
    this.bodies.set(request.id, hash('sha256', request.body, 'hex'));
    if (this.bodies.size % GOOD_FOR_ONE_REPEAT === 1)
      this.repeats.push({ ...request, expected: 'duplicate' });
  }
}

function outcomeOf({ status, body }: Answer): Expected | null {
  if (status === 200) return 'duplicate';
  if (status === 202) return body.includes('"status":"quarantined"') ? 'quarantined' : 'accepted';
  return status === 401 || status === 413 ? 'refused' : null;
}
