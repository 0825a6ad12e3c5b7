import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TraceContext } from '../core/event.ts';
import type { ReceiveSpan } from '../core/tracing.ts';
import type { Gate } from './body.ts';
import type { Share } from './budget.ts';
import type { Due } from './deadlines.ts';
import type { Examined } from './examine.ts';
import type { DeliveryInfo, Stages } from './options.ts';

/** One delivery whose headers may be genuine, and how far it has got. Read by its deadlines and by metrics. */
export class Delivery implements Due {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly examined: Examined;
  /** What it began with, whatever is replaced meanwhile. */
  readonly stages: Stages;
  /** Of the memory for bodies; held until the journal releases the body, which can be after the answer. */
  readonly share: Share;
  /** Null when nobody records one. */
  readonly span: ReceiveSpan | null;
  /** Whose budget for what is not authentic it uses; null when it costs too little to be counted. */
  readonly gate: Gate | null;
  /** End of its headers, monotonic milliseconds. */
  readonly started: number;
  stage: 'body' | 'journal' = 'body';
  bodyBytes = 0;
  /** Index of the secret that matched; `null` before that and without signatures. */
  secret: number | null = null;
  /** Event type, null as long as it is not known. */
  type: string | null = null;
  /** The same as a trace may tell it: without what may be an id. Null without a trace. */
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
    begun: Pick<Delivery, 'examined' | 'stages' | 'share' | 'span' | 'started'>,
    charged: Pick<Gate, 'unverified' | 'sender'> | null,
  ) {
    this.request = request;
    this.response = response;
    this.examined = begun.examined;
    this.stages = begun.stages;
    this.share = begun.share;
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
