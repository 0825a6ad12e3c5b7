import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import { CATALOGUE } from '../core/errors.ts';
import type { ConnectionCounts } from '../core/operations.ts';
import { Budget } from './budget.ts';
import { FORGERIES, stopReading } from './bytes.ts';
import { clientAddress } from './client-address.ts';
import { Connections } from './connections.ts';
import { Deadlines } from './deadlines.ts';
import { Delivery } from './delivery.ts';
import { declaredLength, type Examined, examine } from './examine.ts';
import { handleDelivery } from './handle-delivery.ts';
import { hasUnreadBody, lingerOnClose } from './linger.ts';
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
import { answerOf, write } from './respond.ts';
import { createReceivingServer, listen, urlOf } from './server.ts';
import { type Sender, UnverifiedWork } from './unverified.ts';

type State = 'idle' | 'listening' | 'draining' | 'closed';

/**
 * The open endpoint.
 *
 * idle ──listen──▶ listening ──drain──▶ draining ──close──▶ closed; `close` leads to closed from every mode.
 * - listening: deliveries are handled.
 * - draining: no connection is accepted; a new request on an old one is answered 503 and the connection closed.
 * - closed: nothing is connected.
 * Only `#enter` changes the mode.
 */
export class Receiver {
  readonly #options: ReceiverOptions;
  readonly #limits: ReceiverLimits;
  readonly #clock: Clock;
  readonly #budget: Budget;
  readonly #unverified: UnverifiedWork;
  readonly #connections: Connections;
  /** Of deliveries whose body has not come, or that the journal still has; of those that have then run out of time. */
  readonly #bodies: Deadlines<Delivery>;
  readonly #answers: Deadlines<Delivery>;
  readonly #server: Server;
  #stages: Stages;
  #quarantineStatus: 202 | 422;
  #state: State = 'idle';
  #inFlight = 0;
  #hasForwarded = false;
  #whenIdle: (() => void)[] = [];

  constructor(options: ReceiverOptions) {
    this.#options = options;
    this.#limits = { ...OWN_LIMITS, ...options.limits };
    this.#clock = options.clock;
    this.#budget = new Budget(this.#limits.maxBufferedBytes);
    this.#unverified = new UnverifiedWork(this.#limits.unverifiedBytes, this.#clock);
    this.#connections = new Connections(this.#limits.maxConnections);
    const { bodyTimeout, answerTimeout } = this.#limits;
    this.#bodies = new Deadlines(this.#clock, Math.min(bodyTimeout, answerTimeout), (delivery) =>
      this.#bodyDue(delivery),
    );
    this.#answers = new Deadlines(this.#clock, answerTimeout, (delivery) =>
      this.#end(delivery, problem('not_confirmed', 'neither the journal nor a sink answered in time')),
    );
    this.#quarantineStatus = options.quarantineStatus;
    this.#stages = {
      isBacklogFull: () => options.isBacklogFull(),
      verifier: options.verifier,
      validate: options.validate,
      ingest: options.ingest,
      receipts: options.receipts,
      limits: this.#limits,
      now: () => this.#clock.now(),
      onError: (error) => options.onError?.(error),
    };
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

  /** Whether new deliveries are welcome. */
  get ready(): boolean {
    return this.#state === 'listening';
  }

  /** Deliveries that have begun and are not yet answered. */
  get inFlight(): number {
    return this.#inFlight;
  }

  /** Bodies waiting to be decompressed. */
  get decompressing(): number {
    return this.#unverified.waiting;
  }

  get connections(): ConnectionCounts {
    return this.#connections;
  }

  /** @throws MillraceError `address_unavailable` */
  async listen(): Promise<{ url: string; port: number }> {
    const { host, path } = this.#options;
    const port = await listen(this.#server, host, this.#options.port, this.#options.reusePort);
    this.#server.on('error', (error) => this.#stages.onError(error));
    this.#enter('listening');
    return { url: urlOf(host, port, path), port };
  }

  replace(parts: Partial<Replaceable>): void {
    const { verifier, validate } = this.#stages;
    // A new object: a delivery that has begun holds the old one.
    this.#stages = {
      ...this.#stages,
      verifier: parts.verifier ?? verifier,
      validate: parts.validate ?? validate,
    };
    this.#quarantineStatus = parts.quarantineStatus ?? this.#quarantineStatus;
  }

  /** Stops accepting; resolves when no delivery is running, or `signal` aborts. */
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

  /** Cuts whatever is still connected. */
  async close(): Promise<void> {
    const wasOpen = this.#server.listening || this.#state === 'draining';
    this.#enter('closed');
    if (!wasOpen) return;
    await new Promise<void>((resolve) => {
      // A server that is closed already says so in an error, and that is as good.
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #enter(state: State): void {
    this.#state = state;
  }

  /** One delivery, from its headers to its answer: refuses it by its headers alone, or begins it. */
  #deliver(request: IncomingMessage, response: ServerResponse): void {
    const examined = this.#examine(request);
    if ('kind' in examined) {
      this.#options.tracing?.receive(request.headers)?.end(outcomeName(examined), null);
      this.#settle(request, response, examined, NOTHING_READ);
      return;
    }
    const sender = examined.costly ? this.#senderOf(request) : null;
    const wait = sender === null ? 0 : this.#unverified.waitOf(sender);
    if (wait > 0) {
      const refusal = problem(FORGERIES.code, FORGERIES.detail, wait);
      this.#settle(request, response, refusal, NOTHING_READ);
      return;
    }
    this.#begin(request, response, examined, sender);
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

  #senderOf(request: IncomingMessage): Sender {
    const { trustedProxies } = this.#limits;
    // A proxy sends what comes from many over one connection.
    const isKnown = trustedProxies === 0 && this.#connections.isKnown(request.socket);
    return this.#unverified.senderOf(clientAddress(request, trustedProxies), isKnown);
  }

  /** @param sender null when it is not counted */
  #begin(
    request: IncomingMessage,
    response: ServerResponse,
    examined: Examined,
    sender: Sender | null,
  ): void {
    const started = this.#clock.monotonic();
    const begun = {
      examined,
      stages: this.#stages,
      share: this.#budget.share(),
      span: this.#options.tracing?.receive(request.headers) ?? null,
      started,
    };
    const charged = sender === null ? null : { unverified: this.#unverified, sender };
    const delivery = new Delivery(request, response, begun, charged);
    this.#inFlight += 1;
    this.#bodies.add(delivery, started);
    handleDelivery(delivery, (outcome) => {
      delivery.share.release();
      this.#end(delivery, outcome);
    });
  }

  /** The time for its body is over. */
  #bodyDue(delivery: Delivery): void {
    // Only now, because almost none gets so far. What waits here with its body whole is no fault of its sender.
    if (delivery.stage === 'journal' || delivery.request.complete)
      this.#answers.add(delivery, delivery.started);
    else {
      this.#end(delivery, problem('too_slow', 'the body did not arrive in time'));
      stopReading(delivery.request, 'too slow');
    }
  }

  /** Sees that a delivery ends once, by its outcome or by a deadline. */
  #end(delivery: Delivery, outcome: Outcome): void {
    if (delivery.isEnded) return;
    delivery.isEnded = true;
    this.#bodies.remove(delivery);
    this.#answers.remove(delivery);
    const { request, response, gate, span } = delivery;
    if (delivery.isAuthentic) this.#remember(request);
    else if (gate !== null && !isOurs(outcome) && outcomeName(outcome) !== FORGERIES.code) {
      this.#unverified.wasted(gate.sender, delivery.share.work);
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
        if (isOurs(outcome) || this.#mayLinger(request))
          lingerOnClose(request, this.#clock, this.#limits.lingerTimeout);
        // Or all that is on its way would be read first, up to 2 MiB.
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

  /** An authentic delivery has come over its connection, from its address. */
  #remember(request: IncomingMessage): void {
    const { trustedProxies } = this.#limits;
    if (!this.#connections.setKnown(request.socket, true) && trustedProxies === 0) return;
    this.#unverified.remember(clientAddress(request, trustedProxies));
    if (trustedProxies > 0 || this.#hasForwarded || request.headers['x-forwarded-for'] === undefined) return;
    this.#hasForwarded = true;
    this.#options.onForwarded?.();
  }

  /** Reading a rest only to throw it away is work for nobody that is known, too. */
  #mayLinger(request: IncomingMessage): boolean {
    const sender = this.#senderOf(request);
    if (this.#unverified.waitOf(sender) > 0) return false;
    this.#unverified.wasted(sender, declaredLength(request.headers) ?? 0);
    return true;
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

/** After these nobody knows where on the connection the next request begins. */
const CLOSING: ReadonlySet<ProblemCode> = new Set(['body_too_large', 'too_slow', 'request_malformed']);

function isOurs(outcome: Outcome): boolean {
  return outcome.kind === 'problem' && CATALOGUE[outcome.code].status >= 500;
}

function outcomeName(outcome: Outcome): string {
  return outcome.kind === 'problem' ? outcome.code : outcome.kind;
}
