import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { CATALOGUE } from '../core/errors.ts';
import type { ConnectionCounts } from '../core/operations.ts';
import { closeNow } from '../lib/listen.ts';
import { MemoryBudget, Reservation } from './budget.ts';
import { OVER_BUDGET, stopReading } from './bytes.ts';
import { Connections } from './connections.ts';
import { Deadlines } from './deadlines.ts';
import { Delivery } from './delivery.ts';
import { type Examined, examine } from './examine.ts';
import { handleDelivery } from './handle-delivery.ts';
import {
  type DeliveryInfo,
  OWN_LIMITS,
  type ReceiverLimits,
  type ReceiverOptions,
  type Replaceable,
  type Stages,
} from './options.ts';
import { type Outcome, problem, type ProblemCode } from './outcome.ts';
import { stopParsing } from './parser.ts';
import { answerOf, hasUnreadBody, lingerOnClose, write } from './respond.ts';
import { Senders } from './senders.ts';
import { createReceivingServer, listen, listeningUrl } from './server.ts';
import { UnverifiedWork } from './unverified.ts';

type State = 'idle' | 'listening' | 'draining' | 'closed';

/**
 * The open endpoint.
 *
 * idle ──listen──▶ listening ──drain──▶ draining ──close──▶ closed; `close` leads to closed from every mode.
 * - listening: deliveries are handled.
 * - draining: no connection is accepted; a new request on an open one is answered 503, and the connection closed.
 * - closed: nothing is connected.
 * Only `#enter` changes the mode.
 */
export class Receiver {
  readonly #options: ReceiverOptions;
  readonly #limits: ReceiverLimits;
  readonly #clock: Clock;
  readonly #budget: MemoryBudget;
  readonly #unverified: UnverifiedWork;
  readonly #connections: Connections;
  readonly #senders: Senders;
  /** `#bodies`: deliveries until the time for their body is over. `#answers`: those that then still have time. */
  readonly #bodies: Deadlines<Delivery>;
  readonly #answers: Deadlines<Delivery>;
  readonly #server: Server;
  #stages: Stages;
  #quarantineStatus: 202 | 422;
  #state: State = 'idle';
  #inFlight = 0;
  #whenIdle: (() => void)[] = [];

  constructor(options: ReceiverOptions) {
    this.#options = options;
    this.#limits = { ...OWN_LIMITS, ...options.limits };
    this.#clock = options.clock;
    this.#budget = new MemoryBudget(this.#limits.maxBufferedBytes);
    this.#unverified = new UnverifiedWork(this.#limits.unverifiedBytes, this.#clock);
    this.#connections = new Connections(this.#limits.maxConnections);
    const { bodyTimeout, answerTimeout, trustedProxies } = this.#limits;
    this.#senders = new Senders(this.#unverified, this.#connections, trustedProxies, options.onForwarded);
    this.#bodies = new Deadlines(this.#clock, Math.min(bodyTimeout, answerTimeout), (delivery) =>
      this.#bodyDue(delivery),
    );
    this.#answers = new Deadlines(this.#clock, answerTimeout, (delivery) =>
      this.#end(delivery, problem('not_confirmed', 'neither the journal nor a sink answered in time')),
    );
    this.#quarantineStatus = options.quarantineStatus;
    this.#stages = { ...options, limits: this.#limits };
    this.#server = createReceivingServer(options.path, this.#limits, {
      deliver: (request, response) => this.#deliver(request, response),
      documents: options.documents,
      refuse: (request, response, code, detail) =>
        this.#settle(request, response, problem(code, detail), NOTHING_READ),
      connections: this.#connections,
      onMalformed: (code) => this.#note(problem(code, 'before the request was complete'), NOTHING_READ),
    });
  }

  get state(): State {
    return this.#state;
  }

  /** Whether new deliveries are accepted. */
  get ready(): boolean {
    return this.#state === 'listening';
  }

  /** Deliveries that are not answered yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Bodies waiting to be decompressed. */
  get decompressing(): number {
    return this.#unverified.waiting;
  }

  get connections(): ConnectionCounts & Pick<Connections, 'max'> {
    return this.#connections;
  }

  /** @throws MillraceError `address_unavailable` */
  async listen(): Promise<{ url: string; port: number }> {
    const { host, path } = this.#options;
    const port = await listen(this.#server, host, this.#options.port, this.#options.reusePort);
    this.#server.on('error', (error) => this.#stages.onError(error));
    this.#enter('listening');
    return { url: listeningUrl(host, port, path), port };
  }

  replace({ quarantineStatus = this.#quarantineStatus, ...parts }: Partial<Replaceable>): void {
    // A new object: a delivery that has begun holds the old one.
    this.#stages = { ...this.#stages, ...parts };
    this.#quarantineStatus = quarantineStatus;
  }

  /** Stops accepting; resolves when all deliveries are answered, or `signal` aborts. */
  async drain(signal: AbortSignal): Promise<void> {
    if (this.#state === 'listening') {
      this.#enter('draining');
      this.#server.close();
    }
    if (this.#inFlight === 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle.push(resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    const wasOpen = this.#server.listening || this.#state === 'draining';
    this.#enter('closed');
    if (wasOpen) await closeNow(this.#server);
  }

  #enter(state: State): void {
    this.#state = state;
  }

  /** Refuses a delivery by its headers, or begins it. */
  #deliver(request: IncomingMessage, response: ServerResponse): void {
    const examined = this.#examine(request);
    if ('kind' in examined) {
      this.#options.tracing?.receive(request.headers)?.end(outcomeName(examined), null);
      this.#settle(request, response, examined, NOTHING_READ);
      return;
    }
    // Null for a delivery that costs too little to be counted.
    const sender = examined.costly ? this.#senders.of(request) : null;
    const wait = sender === null ? 0 : this.#unverified.waitOf(sender);
    if (wait > 0) {
      const refusal = problem(OVER_BUDGET.code, OVER_BUDGET.detail, wait);
      this.#settle(request, response, refusal, NOTHING_READ);
      return;
    }
    const started = this.#clock.monotonic();
    const begun = {
      examined,
      stages: this.#stages,
      memory: new Reservation(this.#budget),
      span: this.#options.tracing?.receive(request.headers) ?? null,
      started,
    };
    const charged = sender === null ? null : { unverified: this.#unverified, sender };
    const delivery = new Delivery(request, response, begun, charged);
    this.#inFlight += 1;
    this.#bodies.add(delivery, started);
    handleDelivery(delivery, (outcome) => {
      delivery.memory.release();
      this.#end(delivery, outcome);
    });
  }

  #examine(request: IncomingMessage): Examined | Outcome {
    if (this.#state !== 'listening') return problem('shutting_down', 'deliver to another replica or later');
    try {
      return examine(request, this.#stages);
    } catch (error) {
      this.#stages.onError(error);
      return problem('internal', 'the delivery could not be handled');
    }
  }

  /** The time for its body is over. */
  #bodyDue(delivery: Delivery): void {
    // Only now: almost no delivery gets so far. A body that is complete and waits here is not late.
    if (delivery.stage === 'journal' || delivery.request.complete)
      this.#answers.add(delivery, delivery.started);
    else {
      this.#end(delivery, problem('too_slow', 'the body did not arrive in time'));
      stopReading(delivery.request, 'too slow');
    }
  }

  /** Ends a delivery, by the first of its outcome and its deadline. */
  #end(delivery: Delivery, outcome: Outcome): void {
    if (delivery.isEnded) return;
    delivery.isEnded = true;
    this.#bodies.remove(delivery);
    this.#answers.remove(delivery);
    const { request, response, gate, span } = delivery;
    if (delivery.isAuthentic) this.#senders.remember(request);
    else if (gate !== null && !isOurs(outcome) && outcomeName(outcome) !== OVER_BUDGET.code) {
      this.#unverified.wasted(gate.sender, delivery.memory.work);
      this.#connections.setKnown(request.socket, false);
    }
    span?.end(outcomeName(outcome), delivery.tracedType);
    this.#settle(request, response, outcome, delivery.info(this.#clock.monotonic()));
    this.#inFlight -= 1;
    if (this.#inFlight === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  #settle(request: IncomingMessage, response: ServerResponse, outcome: Outcome, info: DeliveryInfo): void {
    this.#connections.end(request.socket);
    if (outcome.kind !== 'gone') {
      const unread = hasUnreadBody(request);
      const cut = outcome.kind === 'problem' && CLOSING.has(outcome.code);
      if (unread || cut) {
        stopParsing(request);
        if (isOurs(outcome) || this.#senders.mayLinger(request))
          lingerOnClose(request, this.#clock, this.#limits.lingerTimeout);
        // Otherwise up to 2 MiB of the rest would be read.
        else request.socket.pause();
      }
      write(
        response,
        answerOf(outcome, this.#quarantineStatus, this.#limits.retryAfter),
        unread || cut || this.#state !== 'listening',
      );
    }
    this.#note(outcome, info);
  }

  #note(outcome: Outcome, info: DeliveryInfo): void {
    try {
      this.#options.onOutcome?.(outcome, info);
    } catch (error) {
      this.#stages.onError(error);
    }
  }
}

const NOTHING_READ: DeliveryInfo = { durationMs: 0, bodyBytes: 0, secret: null, type: null };

/** After these it is not known where on the connection the next request begins. */
const CLOSING: ReadonlySet<ProblemCode> = new Set(['body_too_large', 'too_slow', 'request_malformed']);

function isOurs(outcome: Outcome): boolean {
  return outcome.kind === 'problem' && CATALOGUE[outcome.code].status >= 500;
}

function outcomeName(outcome: Outcome): string {
  return outcome.kind === 'problem' ? outcome.code : outcome.kind;
}
