import type { Endpoints } from './endpoints.ts';
import { etlMessage, type Destination, type Publish } from './etl.ts';
import { newDeliveryId } from './made-up-events.ts';
import type { Message, WebhookSender } from './sender.ts';

/** The user that an event is about. */
export interface Subject {
  readonly id: string;
  readonly teamId: string;
  readonly clientUserId: string | null;
}

export interface Pipelines {
  readonly destinations: readonly Destination[];
  readonly publish: Publish;
}

interface EventsOptions {
  readonly endpoints: Endpoints;
  readonly sender: WebhookSender;
  readonly pipelines: Pipelines | null;
}

const EXHAUSTED = 'message.attempt.exhausted';

/** Sends events to the webhooks and pipelines of a team. */
export class Events {
  /** Events sent so far, by type. */
  readonly counts = new Map<string, number>();
  readonly #options: EventsOptions;

  constructor(options: EventsOptions) {
    this.#options = options;
    options.sender.onAttempt(({ message, endpoint, exhausted }) => {
      if (!exhausted || message.type === EXHAUSTED) return;
      const data = { message_id: message.id, event_type: message.type, endpoint_id: endpoint.id };
      const subject = subjectOf(message.body) ?? { id: '', teamId: endpoint.teamId, clientUserId: '' };
      this.emit(subject, EXHAUSTED, data);
    });
  }

  /** @returns the id of every attempt */
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

  /** Sends a body unchanged. */
  send(subject: Pick<Subject, 'id' | 'teamId'>, message: Message): string {
    const { id, type, body } = message;
    const { endpoints, sender, pipelines } = this.#options;
    this.counts.set(type, (this.counts.get(type) ?? 0) + 1);
    for (const endpoint of endpoints.list(subject.teamId)) {
      const { eventTypes } = endpoint;
      const wanted = eventTypes.length === 0 || eventTypes.some((prefix) => type.startsWith(prefix));
      if (wanted && !endpoint.disabled) sender.send(endpoint, message);
    }
    const event = { id, type, teamId: subject.teamId, userId: subject.id, body, at: Date.now() };
    for (const destination of pipelines?.destinations ?? [])
      pipelines?.publish(destination, etlMessage(destination, event));
    return id;
  }
}

/** The user of a body; null for a body that is not JSON. */
export function subjectOf(body: Buffer): Subject | null {
  let envelope: Readonly<Record<string, unknown>>;
  try {
    envelope = Object(JSON.parse(body.toString()));
  } catch {
    return null;
  }
  const text = (name: string): string => (typeof envelope[name] === 'string' ? envelope[name] : '');
  return { id: text('user_id'), teamId: text('team_id'), clientUserId: text('client_user_id') };
}
