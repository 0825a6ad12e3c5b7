import { jsonIn } from '../lib/parsed.ts';
import type { Endpoints } from './endpoints.ts';
import { etlMessage, type Destination, type EtlMessage, type Publish } from './etl.ts';
import { newDeliveryId } from './made-up-events.ts';
import type { Message, WebhookSender } from './sender.ts';
import type { Shelf, State } from './state.ts';

/** Whom an event is about. */
export interface Subject {
  readonly id: string;
  readonly teamId: string;
  readonly clientUserId: string;
}

export interface Pipelines {
  readonly destinations: readonly Destination[];
  readonly publish: Publish;
}

/** A message that no pipeline has taken yet. */
interface Unpublished {
  readonly id: string;
  /** Name of the destination. */
  readonly destination: string;
  readonly message: EtlMessage;
}

/** The body is in base64. */
type SavedMessage = Omit<Unpublished, 'message'> & {
  readonly message: Omit<EtlMessage, 'body'> & { readonly body: string };
};

export interface EventsOptions {
  readonly endpoints: Endpoints;
  readonly sender: WebhookSender;
  readonly pipelines: Pipelines | null;
  readonly state: State;
  readonly commit: () => void;
}

const EXHAUSTED = 'message.attempt.exhausted';

/** Turns what happens into events, and hands them to the webhooks and pipelines of the team. */
export class Events {
  /** Events sent so far, by type. */
  readonly counts = new Map<string, number>();
  readonly #options: EventsOptions;
  readonly #waiting: Shelf<Unpublished>;

  /** Publishes what an earlier run had not; what is for a pipeline that is not here now waits on. */
  constructor(options: EventsOptions) {
    const { sender, pipelines, state } = options;
    this.#options = options;
    this.#waiting = state.shelf<Unpublished, SavedMessage>('messages', {
      dump: ({ message, ...rest }) => {
        return { ...rest, message: { ...message, body: message.body.toString('base64') } };
      },
      load: ({ message, ...rest }) => {
        return { ...rest, message: { ...message, body: Buffer.from(message.body, 'base64') } };
      },
    });
    for (const { id, destination: name, message } of this.#waiting.all()) {
      const destination = pipelines?.destinations.find((one) => one.name === name);
      if (destination !== undefined) void this.#publish(destination, message, id);
    }
    sender.onAttempt(({ message, endpoint, exhausted }) => {
      if (!exhausted || message.type === EXHAUSTED) return;
      const data = { message_id: message.id, event_type: message.type, endpoint_id: endpoint.id };
      const subject = subjectOf(message.body) ?? { id: '', teamId: endpoint.teamId, clientUserId: '' };
      this.emit(subject, EXHAUSTED, data);
    });
  }

  /** @returns the id that every attempt will carry */
  emit(subject: Subject, type: string, data: unknown): string {
    const body = Buffer.from(
      JSON.stringify({
        event_type: type,
        data,
        team_id: subject.teamId,
        user_id: subject.id,
        client_user_id: subject.clientUserId,
      }),
    );
    return this.send(subject, { id: newDeliveryId(), type, body });
  }

  /** Sends a body as it is. */
  send(subject: Pick<Subject, 'id' | 'teamId'>, message: Message): string {
    const { id, type, body } = message;
    const { endpoints, sender, pipelines } = this.#options;
    this.counts.set(type, (this.counts.get(type) ?? 0) + 1);
    for (const endpoint of endpoints.list(subject.teamId)) {
      const { eventTypes } = endpoint;
      const wanted = eventTypes.length === 0 || eventTypes.some((prefix) => type.startsWith(prefix));
      if (wanted && !endpoint.disabled) sender.send(endpoint, message);
    }
    for (const destination of pipelines?.destinations ?? []) {
      const event = { id, type, teamId: subject.teamId, userId: subject.id, body, at: Date.now() };
      void this.#publish(destination, etlMessage(destination, event), id);
    }
    return id;
  }

  async #publish(destination: Destination, message: EtlMessage, id: string): Promise<void> {
    const place = `${id} ${destination.name}`;
    this.#waiting.put(place, { id, destination: destination.name, message });
    try {
      await this.#options.pipelines?.publish(destination, message);
    } catch {
      // It was refused for good.
    }
    this.#waiting.delete(place);
    this.#options.commit();
  }
}

/** Whom a body is about; null when it does not say. */
export function subjectOf(body: Buffer): Subject | null {
  const envelope = jsonIn(body.toString()) as Readonly<Record<string, unknown>> | null;
  if (envelope === null) return null;
  const text = (name: string): string => (typeof envelope[name] === 'string' ? envelope[name] : '');
  return { id: text('user_id'), teamId: text('team_id'), clientUserId: text('client_user_id') };
}
