import type { Envelope, Event } from '../../core/event.ts';
import type { InvalidReason } from '../../core/ingest.ts';
import {
  createValidator,
  DEFAULT_FIELDS,
  type EnvelopeOptions,
  type InvalidCode,
  type Validator,
} from './envelope.ts';

/**
 * Reads the envelope of events that came in before, by the rule that reads it before the 2xx. What is kept was judged then,
 * and old archives can lack ids: nothing is required.
 */
export function createKeptValidator(envelope: KeptEnvelope): Validator {
  return createValidator({ ...envelope, teams: [], userIds: 'text', require: [] });
}

type KeptEnvelope = Pick<EnvelopeOptions, keyof Envelope | 'maxDepth'>;

/** A kept event as the endpoint would take it in: whose it is, its body says, where it says it. */
export function asItsBodySays(
  event: Event,
  validate: Validator,
): { readonly event: Event; readonly reasons: readonly InvalidReason[] | null } {
  const validation = validate(event.body, event);
  return {
    event: { ...event, ...validation.envelope },
    reasons: validation.fit ? null : validation.reasons,
  };
}

/** Without a body that can be read nothing is known of its fields. */
const UNREADABLE: ReadonlySet<string> = new Set([
  'empty',
  'not_json',
  'not_object',
  'too_deep',
] satisfies InvalidCode[]);

/**
 * Compares what is kept of events with what their bodies say.
 * @param fields null for those that a config has by default
 * @returns names of the body's members that say something else; null for a body that cannot be read
 */
export function createEnvelopeCheck(
  fields: KeptEnvelope | null,
): (kept: Envelope, body: Buffer, isSigned: () => boolean) => readonly string[] | null {
  const names = fields ?? { ...DEFAULT_FIELDS, maxDepth: 128 };
  const validate = createKeptValidator(names);
  return (kept, body, isSigned) => {
    const validation = validate(body);
    if (!validation.fit && validation.reasons.some(({ code }) => UNREADABLE.has(code))) return null;
    const says = validation.envelope;
    const differ = (name: keyof Envelope): boolean => {
      if (kept[name] === (says[name]?.toWellFormed() ?? null)) return false;
      // Without the sender's signature: a broker may have said beside the body what it lacks, and a route may have redacted the client user.
      const mayDiffer = (says[name] ?? '') === '' || (name === 'clientUser' && kept.clientUser === null);
      return !mayDiffer || isSigned();
    };
    return (['type', 'team', 'user', 'clientUser'] as const).filter(differ).map((name) => names[name]);
  };
}
