import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TraceContext } from '../core/event.ts';
import type { ReceiveSpan } from '../core/tracing.ts';
import type { Gate } from './body.ts';
import type { Reservation } from './budget.ts';
import type { Due } from './deadlines.ts';
import type { Examined } from './examine.ts';
import type { DeliveryInfo, Stages } from './options.ts';

/** A delivery that its headers did not refuse, and its progress. Read by its deadlines and by metrics. */
export class Delivery implements Due {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly examined: Examined;
  /** As they were when it began; a reload does not change them. */
  readonly stages: Stages;
  /** Of its body, until the journal releases it, which can be after the answer. */
  readonly memory: Reservation;
  /** Null without tracing. */
  readonly span: ReceiveSpan | null;
  /** Null when it costs too little to be counted. */
  readonly gate: Gate | null;
  /** End of its headers, monotonic milliseconds. */
  readonly started: number;
  stage: 'body' | 'journal' = 'body';
  bodyBytes = 0;
  /** Index of the secret that matched; null before that, and without signatures. */
  secret: number | null = null;
  /** Event type; null until it is known. */
  type: string | null = null;
  /** Event type without parts that can be ids, for the trace; null without a trace. */
  tracedType: string | null = null;
  isAuthentic = false;
  /** It has its outcome. */
  isEnded = false;
  due = 0;
  sooner: this | null = null;
  later: this | null = null;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    begun: Pick<Delivery, 'examined' | 'stages' | 'memory' | 'span' | 'started'>,
    charged: Pick<Gate, 'unverified' | 'sender'> | null,
  ) {
    this.request = request;
    this.response = response;
    this.examined = begun.examined;
    this.stages = begun.stages;
    this.memory = begun.memory;
    this.span = begun.span;
    this.gate =
      charged === null ? null : { ...charged, isEnded: () => this.isEnded || !request.socket.writable };
    this.started = begun.started;
  }

  get trace(): TraceContext | null {
    return this.span?.trace ?? null;
  }

  /** @param now monotonic milliseconds */
  info(now: number): DeliveryInfo {
    const { started, bodyBytes, secret, type } = this;
    return { durationMs: now - started, bodyBytes, secret, type };
  }
}
