import type { JournalEvent } from '../../core/event.ts';
import type { Redaction } from '../../core/redaction.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { JsonCutter } from '../../lib/json-cut.ts';
import { parsePath } from '../../lib/json-paths.ts';

/** What of an event leaves under a redaction. */
class Redactor {
  readonly #cutter: JsonCutter;
  readonly #hidesClientUser: boolean;

  constructor({ only, redact = [], remove = [], mask = null, fields }: Redaction) {
    const { type, team, user, clientUser } = fields;
    const needed = [type, team, user, clientUser].map((name) => [{ name }]);
    const lists = {
      only: only === undefined ? null : [...needed, ...only.map(parsePath)],
      mask: redact.map(parsePath),
      remove: remove.map(parsePath),
    };
    this.#cutter = new JsonCutter(lists, JSON.stringify(mask));
    this.#hidesClientUser = this.#cutter.hides(clientUser);
  }

  /** @throws JsonFault for a body that is no JSON object */
  apply(event: JournalEvent): JournalEvent {
    const body = this.#cutter.apply(event.body);
    // Sinks pass it on beside the body.
    const clientUser = this.#hidesClientUser ? null : event.clientUser;
    if (body === event.body && clientUser === event.clientUser) return event;
    if (body === event.body) return { ...event, clientUser };
    // What was signed is not what leaves.
    const handling = { ...event.handling, redacted: true };
    return { ...event, body, clientUser, headers: {}, handling };
  }
}

/** A redaction is the same object for as long as its route is in force. */
const REDACTORS = new WeakMap<Redaction, Redactor>();

/**
 * The event as it leaves: the same object when nothing of it is redacted.
 * @throws JsonFault when its body cannot be read, and so cannot leave
 */
export function redacted(event: JournalEvent, redactions: readonly Redaction[]): JournalEvent {
  let left = event;
  for (const redaction of redactions) {
    left = getOrMake(REDACTORS, redaction, () => new Redactor(redaction)).apply(left);
  }
  return left;
}
