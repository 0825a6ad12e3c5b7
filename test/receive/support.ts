import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import type { Event } from '../../src/core/event.ts';
import type { AppendResult, Ingest, InvalidReason } from '../../src/core/ingest.ts';
import type { DeliveryInfo, ReceiverLimits, ReceiverOptions } from '../../src/receive/options.ts';
import type { Outcome } from '../../src/receive/outcome.ts';
import { Receiver } from '../../src/receive/receiver.ts';
import { createValidator } from '../../src/receive/validate/envelope.ts';
import { createVerifier } from '../../src/receive/verify/registry.ts';
import { signStandardWebhooks } from '../../src/receive/verify/sign-standard-webhooks.ts';
import { ENVELOPE, SERVER } from '../support/defaults.ts';
import { TEAM, USER } from '../support/events.ts';

export const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

export const EVENT = Buffer.from(
  JSON.stringify({
    event_type: 'daily.data.meal.created',
    team_id: TEAM,
    user_id: USER,
    client_user_id: null,
    data: {},
  }),
);

/** A receiver on a free port, with a journal that is an array. */
export interface Started {
  readonly receiver: Receiver;
  readonly url: string;
  readonly port: number;
  readonly accepted: Event[];
  readonly quarantined: { event: Event; reasons: readonly InvalidReason[] }[];
  readonly outcomes: { outcome: Outcome; info: DeliveryInfo }[];
  readonly errors: unknown[];
  /** Resolves when one more delivery has ended than at the last call. */
  readonly nextOutcome: () => Promise<Outcome>;
}

type Overrides = Partial<Omit<ReceiverOptions, 'limits'>> & { readonly limits?: Partial<ReceiverLimits> };

export async function start({ limits, ...overrides }: Overrides = {}): Promise<Started> {
  const accepted: Event[] = [];
  const quarantined: Started['quarantined'] = [];
  const outcomes: Started['outcomes'] = [];
  const errors: unknown[] = [];
  const waiting: (() => void)[] = [];
  let taken = 0;
  const store = async (event: Event): Promise<AppendResult> => {
    const known = accepted.concat(quarantined.map((entry) => entry.event)).some(({ id }) => id === event.id);
    return known ? { status: 'duplicate' } : { status: 'accepted', seq: accepted.length + 1 };
  };
  const receiver = new Receiver({
    host: '127.0.0.1',
    port: 0,
    path: '/webhooks',
    reusePort: false,
    clock: systemClock,
    verifier: verifierOf(SECRET),
    validate: createValidator(ENVELOPE),
    quarantineStatus: 202,
    isBacklogFull: () => false,
    ingest: {
      accept: async (event) => {
        const result = await store(event);
        if (result.status === 'accepted') accepted.push(event);
        return result;
      },
      quarantine: async (event, reasons) => {
        const result = await store(event);
        if (result.status === 'accepted') quarantined.push({ event, reasons });
        return result;
      },
    },
    onOutcome: (outcome, info) => {
      outcomes.push({ outcome, info });
      for (const wake of waiting.splice(0)) wake();
    },
    onError: (error) => errors.push(error),
    limits: { ...SERVER, ...limits },
    ...overrides,
  });
  onTestFinished(async () => {
    await receiver.close();
    expect(receiver.state).toBe('closed');
  });
  const { url, port } = await receiver.listen();
  const nextOutcome = async (): Promise<Outcome> => {
    while (outcomes.length <= taken) await new Promise<void>((wake) => waiting.push(wake));
    taken += 1;
    return outcomes[taken - 1]!.outcome;
  };
  return { receiver, url, port, accepted, quarantined, outcomes, errors, nextOutcome };
}

/** A journal that answers once it is released; `held` resolves when it has an event. */
export function heldJournal() {
  const [gate, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ingest: Ingest = {
    accept: async () => {
      held.resolve();
      await gate.promise;
      return { status: 'accepted', seq: 1 };
    },
    quarantine: () => Promise.reject(new Error('nothing here is invalid')),
  };
  return { ingest, held: held.promise, release: gate.resolve };
}

export function verifierOf(...secrets: string[]): ReceiverOptions['verifier'] {
  return createVerifier({ scheme: 'standard-webhooks', secrets, tolerance: 300_000 });
}

let deliveries = 0;

export function signed(body: Buffer, id = `msg_${(deliveries += 1)}`): Record<string, string> {
  return signStandardWebhooks(SECRET, id, Date.now(), body, 'svix');
}

/** One signed delivery; `sent` are other bytes than the signed ones. */
export async function deliver(
  url: string,
  body: Buffer = EVENT,
  options: { id?: string; headers?: Record<string, string>; sent?: Buffer } = {},
): Promise<{ status: number; json: Record<string, unknown>; headers: Headers }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...signed(body, options.id), ...options.headers },
    body: new Uint8Array(options.sent ?? body),
  });
  return {
    status: response.status,
    json: record(await response.json()),
    headers: response.headers,
  };
}

function record(json: unknown): Record<string, unknown> {
  return { ...Object(json) };
}

/** A client that writes what it wants. */
export class RawClient {
  readonly socket: Socket;
  text = '';
  readonly closed: Promise<void>;
  /** The server has closed its side. */
  readonly ended: Promise<void>;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.setNoDelay(true);
    // A reset is one of the ways in which a server may close.
    this.socket.on('error', () => undefined);
    this.socket.on('data', (chunk) => (this.text += chunk.toString('latin1')));
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
    this.ended = new Promise((resolve) => this.socket.once('end', () => resolve()));
    this.socket.once('end', this.#answerEnd);
    onTestFinished(() => {
      this.socket.destroy();
    });
  }

  readonly #answerEnd = (): void => {
    this.socket.end();
  };

  /** From now on the client keeps its side open when the server closes. */
  keepOpen(): void {
    this.socket.off('end', this.#answerEnd);
  }

  get status(): number {
    return Number(this.text.slice(9, 12));
  }

  /** Resolves when that much has come back, or the connection is over. */
  async until(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.text) && !this.socket.destroyed) {
      await Promise.race([once(this.socket, 'data'), this.closed]);
    }
  }
}

export function head(headers: Record<string, string | number>, line = 'POST /webhooks HTTP/1.1'): string {
  const lines = Object.entries({ host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line}\r\n${lines.join('')}\r\n`;
}

/** One signed delivery, as it travels. */
export function wholeRequest(): string {
  return head({ ...signed(EVENT), 'content-length': EVENT.length }) + EVENT.toString();
}
